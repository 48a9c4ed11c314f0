"""Media types: what is one, and which one the name of a file tells.

Patterns and table are made when somebody asks: most conversations hold none, and every import would wait for them.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

_WORD: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE: Final = rf"{_WORD}/{_WORD}(?: *; *{_WORD}(?:=(?:{_WORD}|\"[ !#-\[\]-~]*\"))?)*"

ANY_BYTES: Final = "application/octet-stream"
"""The media type of what nothing is known of."""


def is_media_type(text: str) -> bool:
    """Whether the text is a media type, with parameters or without."""
    return re.fullmatch(_MEDIA_TYPE, text) is not None


def media_type_of(uri: str) -> str:
    """What the last dot of a URI's path tells, from the same table as .NET's `MediaTypeMap`."""
    path = re.sub(_PATH, "", uri).partition("#")[0].partition("?")[0]
    name = re.sub(_ESCAPED, lambda found: chr(int(found[1], 16)), path).replace("\\", "/").rpartition("/")[2]
    return _by_extension().get(name.rpartition(".")[2].lower(), ANY_BYTES) if "." in name else ANY_BYTES


_PATH: Final = r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*"
_ESCAPED: Final = "%(2[dDeE]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA]|5[fF]|7[eE])"

_TABLE: Final = """
application/atom+xml atom
application/brotli br
application/cbor cbor
application/dash+xml mpd
application/epub+zip epub
application/geo+json geojson
application/gpx+xml gpx
application/graphql graphql
application/gzip gz
application/hta hta
application/java-archive jar
application/java-vm class
application/json json
application/ld+json jsonld
application/mac-binhex40 hqx
application/manifest+json webmanifest
application/msaccess accdb accde accdt
application/msword doc dot
application/oda oda
application/ogg ogx
application/onenote one onea onepkg onetmp onetoc onetoc2
application/opensearchdescription+xml osdx
application/pdf pdf
application/pkcs10 p10
application/pkcs7-mime p7c p7m
application/pkcs7-signature p7s
application/pkix-crl crl
application/postscript ai eps ps
application/powershell ps1
application/rss+xml rss
application/rtf rtf
application/sql sql
application/toml toml
application/vnd.amazon.ebook azw
application/vnd.android.package-archive apk
application/vnd.apache.parquet parquet
application/vnd.apple.installer+xml mpkg
application/vnd.apple.keynote key
application/vnd.apple.mpegurl m3u8
application/vnd.apple.numbers numbers
application/vnd.apple.pages pages
application/vnd.debian.binary-package deb
application/vnd.fdf fdf
application/vnd.google-earth.kml+xml kml
application/vnd.google-earth.kmz kmz
application/vnd.lotus-wordpro lwp
application/vnd.mozilla.xul+xml xul
application/vnd.ms-cab-compressed cab
application/vnd.ms-excel xla xlc xlm xls xlt xlw
application/vnd.ms-excel.addin.macroEnabled.12 xlam
application/vnd.ms-excel.sheet.binary.macroEnabled.12 xlsb
application/vnd.ms-excel.sheet.macroEnabled.12 xlsm
application/vnd.ms-excel.template.macroEnabled.12 xltm
application/vnd.ms-fontobject eot
application/vnd.ms-office.calx calx
application/vnd.ms-officetheme thmx
application/vnd.ms-pki.certstore sst
application/vnd.ms-pki.pko pko
application/vnd.ms-pki.seccat cat
application/vnd.ms-powerpoint pot pps ppt
application/vnd.ms-powerpoint.addin.macroEnabled.12 ppam
application/vnd.ms-powerpoint.presentation.macroEnabled.12 pptm
application/vnd.ms-powerpoint.slide.macroEnabled.12 sldm
application/vnd.ms-powerpoint.slideshow.macroEnabled.12 ppsm
application/vnd.ms-powerpoint.template.macroEnabled.12 potm
application/vnd.ms-project mpp
application/vnd.ms-visio.viewer vdx
application/vnd.ms-word.document.macroEnabled.12 docm
application/vnd.ms-word.template.macroEnabled.12 dotm
application/vnd.ms-works wcm wdb wks wps
application/vnd.ms-xpsdocument xps
application/vnd.oasis.opendocument.formula odf
application/vnd.oasis.opendocument.graphics odg
application/vnd.oasis.opendocument.presentation odp
application/vnd.oasis.opendocument.spreadsheet ods
application/vnd.oasis.opendocument.text odt
application/vnd.openxmlformats-officedocument.presentationml.presentation pptx
application/vnd.openxmlformats-officedocument.presentationml.slide sldx
application/vnd.openxmlformats-officedocument.presentationml.slideshow ppsx
application/vnd.openxmlformats-officedocument.presentationml.template potx
application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xlsx
application/vnd.openxmlformats-officedocument.spreadsheetml.template xltx
application/vnd.openxmlformats-officedocument.wordprocessingml.document docx
application/vnd.openxmlformats-officedocument.wordprocessingml.template dotx
application/vnd.rar rar
application/vnd.stardivision.draw sda
application/vnd.stardivision.impress sdd
application/vnd.stardivision.writer sdw
application/vnd.sun.xml.impress sxi
application/vnd.sun.xml.impress.template sti
application/vnd.sun.xml.writer sxw
application/vnd.sun.xml.writer.global sxg
application/vnd.sun.xml.writer.template stw
application/vnd.visio vsd vss vst vsw vsx vtx
application/vnd.wordperfect wpd
application/wasm wasm
application/winhlp hlp
application/x-7z-compressed 7z
application/x-abiword abw
application/x-apple-diskimage dmg
application/x-bcpio bcpio
application/x-bzip bz
application/x-bzip2 bz2
application/x-cdf cdf
application/x-compress z
application/x-compressed tgz
application/x-cpio cpio
application/x-csh csh
application/x-cue cue
application/x-dbf dbf
application/x-director dcr dir dxr
application/x-dvi dvi
application/x-freearc arc
application/x-gtar gtar
application/x-hdf hdf
application/x-httpd-php php
application/x-hwp hwp
application/x-internet-signup ins isp
application/x-iso9660-image iso
application/x-latex latex
application/x-miva-compiled mvc
application/x-ms-application application
application/x-ms-manifest manifest
application/x-ms-reader lit
application/x-ms-vsto vsto
application/x-ms-wmd wmd
application/x-ms-wmz wmz
application/x-msaccess mdb
application/x-mscardfile crd
application/x-msclip clp
application/x-msmediaview m13 m14 mvb
application/x-msmetafile wmf
application/x-msmoney mny
application/x-mspublisher pub
application/x-msschedule scd
application/x-msterminal trm
application/x-mswrite wri
application/x-ndjson jsonl ndjson
application/x-netcdf nc
application/x-oleobject hhc
application/x-pem-file pem
application/x-perfmon pma pmc pml pmr pmw
application/x-pkcs12 p12 pfx
application/x-pkcs7-certificates p7b spc
application/x-pkcs7-certreqresp p7r
application/x-quicktimeplayer qtl
application/x-rpm rpm
application/x-sh sh
application/x-shar shar
application/x-shockwave-flash swf
application/x-smaf mmf
application/x-sqlite3 db sqlite sqlite3
application/x-stuffit sit
application/x-sv4cpio sv4cpio
application/x-sv4crc sv4crc
application/x-tar tar
application/x-tcl tcl
application/x-tex tex
application/x-texinfo texi texinfo
application/x-troff roff tr
application/x-troff-man man
application/x-troff-me me
application/x-ustar ustar
application/x-wais-source src
application/x-x509-ca-cert cer crt der
application/xaml+xml xaml
application/xhtml+xml xht xhtml
application/xml xml
application/xml-dtd dtd
application/yaml yaml yml
application/zip nupkg snupkg zip
application/zstd zst
audio/aac aac
audio/aifc aifc
audio/aiff aiff
audio/basic au snd
audio/flac flac
audio/mid rmi
audio/midi mid midi
audio/mp4 m4a
audio/mpeg mp3
audio/ogg oga ogg spx
audio/opus opus
audio/vnd.dlna.adts adt adts
audio/wav wav
audio/webm weba
audio/x-aiff aif
audio/x-matroska mka
audio/x-mpegurl m3u
audio/x-ms-wax wax
audio/x-ms-wma wma
drawing/x-dwf dwf
font/collection ttc
font/otf otf
font/ttf ttf
font/woff woff
font/woff2 woff2
image/apng apng
image/avif avif
image/bmp bmp dib
image/cgm cgm
image/gif gif
image/heic heic
image/heif heif
image/ief ief
image/jpeg jfif jpe jpeg jpg
image/jxl jxl
image/png png pnz
image/svg+xml svg svgz
image/tiff tif tiff
image/vnd.microsoft.icon ico
image/vnd.wap.wbmp wbmp
image/webp webp
image/x-cmu-raster ras
image/x-cmx cmx
image/x-portable-anymap pnm
image/x-portable-bitmap pbm
image/x-portable-graymap pgm
image/x-portable-pixmap ppm
image/x-rgb rgb
image/x-xbitmap xbm
image/x-xpixmap xpm
image/x-xwindowdump xwd
message/rfc822 eml mht mhtml nws
model/gltf+json gltf
model/gltf-binary glb
model/stl stl
text/cache-manifest appcache
text/calendar ical icalendar ics ifb
text/css css
text/csv csv
text/html htm html
text/javascript cjs js mjs
text/jsx jsx
text/markdown markdown md
text/mdx mdx
text/plain asm bas c cnf config cpp h ini log sln txt xdr
text/richtext rtx
text/scriptlet sct
text/sgml sgml
text/svelte svelte
text/tab-separated-values tsv
text/tsx tsx
text/typescript cts ts
text/vbscript vbs
text/vcard vcf
text/vnd.sylk slk sylk
text/vtt vtt
text/vue vue
text/x-component htc
text/x-csharp cs
text/x-dart dart
text/x-go go
text/x-java-source java
text/x-kotlin kt kts
text/x-less less
text/x-ms-odc odc
text/x-perl pl pm
text/x-protobuf proto
text/x-python py pyi pyw
text/x-rust rs
text/x-sass sass
text/x-scss scss
text/x-setext etx
text/x-swift swift
text/x-vcalendar vcs
text/xml mno vml wsdl xsd xsf xsl xslt
video/3gpp 3gp 3gpp
video/3gpp2 3g2 3gp2
video/mp2t mts
video/mp4 m4v mp4 mp4v
video/mpeg m1v mp2 mpa mpe mpeg mpg mpv2
video/ogg ogv
video/quicktime mov qt
video/vnd.dlna.mpeg-tts m2t m2ts tts
video/webm webm
video/x-flv flv
video/x-ivf ivf
video/x-la-asf lsf lsx
video/x-matroska mkv
video/x-ms-asf asf asr asx nsc
video/x-ms-wm wm
video/x-ms-wmp wmp
video/x-ms-wmv wmv
video/x-ms-wmx wmx
video/x-ms-wtv wtv
video/x-ms-wvx wvx
video/x-msvideo avi
video/x-sgi-movie movie
"""


@cache
def _by_extension() -> Mapping[str, str]:
    return {
        extension: media_type
        for media_type, *extensions in map(str.split, _TABLE.strip().splitlines())
        for extension in extensions
    }
