"""What HTTP can say of an expectation: entity tags, turn ids and epochs, on both faces of the service."""

import httpx
import pytest

TEXT = {"role": "user", "contents": [{"$type": "text", "text": "Hello."}]}
MESSAGES = {"messages": [TEXT]}
RECORDS = {"records": [{"format": "openai-chat", "payload": '{"role":"user","content":"Hello."}'}]}

FACES = [("/chat-history/k", MESSAGES), ("/chat-history?key=k", MESSAGES), ("/records?key=k", RECORDS)]


def count(client: httpx.Client) -> int:
    return int(client.head("/chat-history/k").headers.get("Chat-History-Record-Count", -1))


def name_of(answer: httpx.Response) -> str:
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == answer.status_code
    return str(problem["type"]).removeprefix("urn:chathistory:problem:")


class Face:
    """Writes to the conversation through one of the faces."""

    def __init__(self, client: httpx.Client, path: str, body: object) -> None:
        self.client, self.path, self.body = client, path, body
        self._turn = 0

    def send(self, method: str = "POST", *, turn: str | None = None, **headers: str) -> httpx.Response:
        self._turn += 1
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        fields["Idempotency-Key"] = f"turn-{self._turn}" if turn is None else turn
        return self.client.request(method, self.path, json=self.body, headers=fields)


@pytest.fixture(params=FACES, ids=[path for path, _ in FACES])
def face(request: pytest.FixtureRequest, client: httpx.Client) -> Face:
    return Face(client, *request.param)


WRITES = ["POST", "PUT"]


@pytest.mark.parametrize("method", WRITES)
def test_a_write_tells_revision_epoch_and_position(face: Face, method: str) -> None:
    written = face.send(method, turn="t%20%E6%97%A5")
    assert written.is_success
    assert written.headers["Idempotency-Key"] == "t%20%E6%97%A5"
    assert written.headers["Chat-History-First-Position"] == "1"
    assert written.headers["Chat-History-Replayed"] == "false"
    read = face.client.get(face.path)
    assert read.headers["ETag"] == written.headers["ETag"]
    assert read.headers["Chat-History-Epoch"] == written.headers["Chat-History-Epoch"]
    assert read.headers["Chat-History-Record-Count"] == "1"


@pytest.mark.parametrize("method", WRITES)
def test_a_turn_is_written_once(face: Face, method: str) -> None:
    first = face.send(method, turn="t")
    face.send("POST")
    again = face.send(method, turn="t", If_Match='"stale"')
    assert again.is_success
    assert again.headers["Chat-History-Replayed"] == "true"
    assert again.headers["ETag"] == first.headers["ETag"]
    assert count(face.client) == 2


def test_a_turn_id_that_is_taken_by_another_write_is_a_conflict_which_tells_that_one(face: Face) -> None:
    first = face.send(turn="t")
    for conflict in (face.send("PUT", turn="t"), face.send("PUT", turn="t", If_None_Match="*")):
        assert conflict.status_code == 409
        assert name_of(conflict) == "turn-conflict"
        assert conflict.json()["written"] == {
            "revision": first.headers["ETag"].strip('"'),
            "epoch": first.headers["Chat-History-Epoch"],
            "firstPosition": 1,
            "replayed": False,
        }
    assert count(face.client) == 1


@pytest.mark.parametrize("method", WRITES)
def test_only_at_its_revision(face: Face, method: str) -> None:
    etag = face.send().headers["ETag"]
    assert face.send(method, If_Match=etag).is_success
    conflict = face.send(method, If_Match=etag)
    assert conflict.status_code == 412
    assert name_of(conflict) == "revision-conflict"


@pytest.mark.parametrize("method", WRITES)
def test_only_at_one_of_several_revisions(face: Face, method: str) -> None:
    etag = face.send().headers["ETag"]
    assert face.send(method, If_Match=f'"other", {etag}').is_success
    assert face.send(method, If_Match=f'"other", {etag}').status_code == 412


@pytest.mark.parametrize("method", WRITES)
def test_a_weak_tag_matches_no_revision_of_a_write(face: Face, method: str) -> None:
    etag = face.send().headers["ETag"]
    assert face.send(method, If_Match=f"W/{etag}").status_code == 412
    assert face.send(method, If_Match='""').status_code == 412  # nor does that of no revision
    assert count(face.client) == 1


@pytest.mark.parametrize("method", WRITES)
def test_only_where_there_is_something(face: Face, method: str) -> None:
    assert face.send(method, If_Match="*").status_code == 412
    assert face.send(method, If_Match='""').status_code == 412
    assert count(face.client) == -1
    face.send()
    assert face.send(method, If_Match="*").is_success


@pytest.mark.parametrize("method", WRITES)
def test_only_where_there_is_nothing(face: Face, method: str) -> None:
    assert face.send(method, If_None_Match="*").is_success
    conflict = face.send(method, If_None_Match="*")
    assert conflict.status_code == 412
    assert count(face.client) == 1


def test_an_append_only_while_no_records_were_taken_away(face: Face) -> None:
    epoch = face.send().headers["Chat-History-Epoch"]
    assert face.send(Chat_History_Epoch=epoch).is_success
    face.send("PUT")
    conflict = face.send(Chat_History_Epoch=epoch)
    assert conflict.status_code == 412
    assert name_of(conflict) == "epoch-changed"
    assert count(face.client) == 1


def test_an_append_only_where_there_was_nothing_by_its_empty_epoch(face: Face) -> None:
    assert face.send(Chat_History_Epoch="").is_success
    assert face.send(Chat_History_Epoch="").status_code == 412


@pytest.mark.parametrize("path", ["/chat-history/k", "/chat-history?key=k", "/records?key=k"])
def test_remove_only_at_its_revision(client: httpx.Client, path: str) -> None:
    etag = client.post("/chat-history/k", json=MESSAGES).headers["ETag"]
    assert client.delete(path, headers={"If-Match": '"other"'}).status_code == 412
    assert client.delete(path, headers={"If-Match": f'"other", {etag}'}).is_success
    assert client.delete(path, headers={"If-Match": etag}).is_success  # there is nothing any more
    assert client.delete(path, headers={"If-Match": "*"}).is_success
    assert count(client) == -1


def test_removal_says_whether_there_was_something(client: httpx.Client) -> None:
    client.post("/chat-history/k", json=MESSAGES)
    assert client.delete("/records?key=k").json() == {"cleared": True}
    assert client.delete("/records?key=k").json() == {"cleared": False}


@pytest.mark.parametrize("path", ["/chat-history/k", "/records?key=k"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_the_reader_has_is_not_sent_again(client: httpx.Client, path: str, method: str) -> None:
    client.post("/chat-history/k", json=MESSAGES)
    etag = client.request(method, path).headers["ETag"]
    for tags in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        same = client.request(method, path, headers={"If-None-Match": tags})
        assert same.status_code == 304
        assert same.headers["ETag"] == etag
        assert same.content == b""
    client.post("/chat-history/k", json=MESSAGES)
    changed = client.request(method, path, headers={"If-None-Match": etag})
    assert changed.status_code == 200
    assert changed.headers["ETag"] != etag
    assert bool(changed.content) is (method == "GET")


@pytest.mark.parametrize("path", ["/chat-history/k", "/records?key=k"])
def test_what_is_not_there_is_never_unchanged(client: httpx.Client, path: str) -> None:
    for tags in ("*", '""', '"a"'):
        read = client.get(path, headers={"If-None-Match": tags})
        assert read.status_code == 200
        assert "ETag" not in read.headers


@pytest.mark.parametrize("path", ["/chat-history/k", "/records?key=k"])
def test_a_read_only_at_its_revision(client: httpx.Client, path: str) -> None:
    etag = client.post("/chat-history/k", json=MESSAGES).headers["ETag"]
    assert client.get(path, headers={"If-Match": etag}).status_code == 200
    assert client.get(path, headers={"If-Match": '"other"'}).status_code == 412


def test_an_empty_append_writes_nothing_and_keeps_to_its_conditions(client: httpx.Client) -> None:
    def send(**headers: str) -> httpx.Response:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.post("/chat-history/k", json={"messages": []}, headers=fields)

    assert send().status_code == 202
    assert send(If_None_Match="*").status_code == 202
    assert send(If_Match="*").status_code == 412
    assert count(client) == -1
    etag = client.post("/chat-history/k", json=MESSAGES).headers["ETag"]
    assert send(If_Match=etag).status_code == 202
    assert send(If_Match='"other"').status_code == 412
    assert send(If_None_Match="*").status_code == 412
    assert count(client) == 1


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("POST", {"If-Match": "abc"}),
        ("POST", {"If-None-Match": '"abc"'}),
        ("POST", {"If-None-Match": "*", "If-Match": "*"}),
        ("DELETE", {"If-None-Match": "*"}),
        ("POST", {"Idempotency-Key": "%zz"}),
        ("POST", {"Idempotency-Key": "caf\xe9"}),
        ("POST", {"Chat-History-Epoch": "%"}),
        ("PUT", {"Chat-History-Epoch": "abc"}),
        ("GET", {"If-None-Match": "abc"}),
    ],
)
def test_conditions_that_cannot_be_read_are_refused_and_nothing_is_written(
    client: httpx.Client, method: str, headers: dict[str, str]
) -> None:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    answer = client.request(method, "/chat-history/k", json=MESSAGES, headers=raw)
    assert answer.status_code == 400
    assert name_of(answer) == "bad-request"
    assert count(client) == -1


@pytest.mark.parametrize("path", ["/chat-history/k", "/records?key=k"])
@pytest.mark.parametrize("turn", ["", "a" * 201, "%00", "%E6%97%A5" * 67])
def test_a_turn_id_that_no_store_keeps_is_refused(client: httpx.Client, path: str, turn: str) -> None:
    answer = client.post(path, json={**RECORDS, **MESSAGES}, headers={"Idempotency-Key": turn})
    assert answer.status_code == 422
    assert name_of(answer) == "invalid-key"


def test_a_header_that_is_no_list_is_not_given_twice(client: httpx.Client) -> None:
    for name in ("Idempotency-Key", "Chat-History-Epoch", "Content-Type"):
        fields = [("Content-Type", "application/json"), (name, "a"), (name, "b")]
        answer = client.post("/chat-history/k", json=MESSAGES, headers=fields)
        assert answer.status_code == 400
        assert name in answer.json()["detail"].title()
    assert count(client) == -1


def test_the_articles_face_makes_a_turn_id_and_tells_it(client: httpx.Client) -> None:
    first = client.post("/chat-history/k", json=MESSAGES)
    turn = first.headers["Idempotency-Key"]
    again = client.post("/chat-history/k", json=MESSAGES, headers={"Idempotency-Key": turn})
    assert again.headers["Chat-History-Replayed"] == "true"
    assert client.post("/chat-history/k", json=MESSAGES).headers["Idempotency-Key"] != turn


@pytest.mark.parametrize("method", WRITES)
def test_the_face_of_records_asks_for_the_turn_id(client: httpx.Client, method: str) -> None:
    answer = client.request(method, "/records?key=k", json=RECORDS)
    assert answer.status_code == 400
    assert "Idempotency-Key" in answer.json()["detail"]
