"""Shorter views of a conversation for the model; what is stored stays as it is."""

from chathistory_core.reducers.pipeline import ReducerPipeline
from chathistory_core.reducers.reducer import Reducer, Summaries, Summarize, SummaryReducer, Trigger, check_reducer
from chathistory_core.reducers.summarizing import SUMMARY_PROMPT, SummarizingReducer, SummaryModel
from chathistory_core.reducers.summary import SUMMARY_MARK, is_summary, summary_message
from chathistory_core.reducers.tool_results import RoundFormat, ToolResultReducer, tool_lines
from chathistory_core.reducers.windowed import CountingReducer, WindowReducer

__all__ = [
    "SUMMARY_MARK",
    "SUMMARY_PROMPT",
    "CountingReducer",
    "Reducer",
    "ReducerPipeline",
    "RoundFormat",
    "Summaries",
    "Summarize",
    "SummarizingReducer",
    "SummaryModel",
    "SummaryReducer",
    "ToolResultReducer",
    "Trigger",
    "WindowReducer",
    "check_reducer",
    "is_summary",
    "summary_message",
    "tool_lines",
]
