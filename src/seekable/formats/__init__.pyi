# What type checkers see of the package; at run time names are loaded when they are used.

from seekable.formats.contract import Card as Card
from seekable.formats.contract import Checking as Checking
from seekable.formats.contract import Claim as Claim
from seekable.formats.contract import Format as Format
from seekable.formats.contract import Opening as Opening
from seekable.formats.contract import Reading as Reading
from seekable.formats.kaldi.kaldi import Kaldi as Kaldi
from seekable.formats.lines.csv_format import Csv as Csv
from seekable.formats.lines.jsonl import Jsonl as Jsonl
from seekable.formats.lines.line_source import Lines as Lines
from seekable.formats.lines.text import Text as Text
from seekable.formats.look import Folder as Folder
from seekable.formats.look import Look as Look
from seekable.formats.look import OtherTool as OtherTool
from seekable.formats.shar.shar import Shar as Shar
from seekable.formats.tables.tables import Tables as Tables
from seekable.formats.tar.tar import Tar as Tar
from seekable.formats.tokens.tokens import Tokens as Tokens
from seekable.index.scanner import Scanner as Scanner
from seekable.index.surveyor import Surveyor as Surveyor
from seekable.index.surveyor import TableIndexer as TableIndexer
from seekable.index.surveyor import TableLayout as TableLayout
from seekable.nodes.files.leaf import FilesLeaf as FilesLeaf
from seekable.nodes.files.leaf import RunsLeaf as RunsLeaf
from seekable.nodes.files.row_source import RowFormat as RowFormat
from seekable.storage.listing import FoundFiles as FoundFiles
