"""Entries that cannot be read: an error with the place, a hole with the option p, never another record."""

from __future__ import annotations

import gzip
import os
import warnings
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.kaldi.holder_cases import dumped
from tests.kaldi.test_dataset import matrices, same, write_table

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

OLD = 1_700_000_000


def aged(path: Path, seconds: int = OLD) -> Path:
    os.utime(path, (seconds, seconds))
    return path


def script(folder: Path, *lines: str) -> str:
    path = folder / "a.scp"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return f"scp:{path}"


def test_relative_paths_begin_at_the_current_folder_and_then_at_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = matrices(2)
    (tmp_path / "here").mkdir()
    write_table(tmp_path, {"utt0": values["utt0"]})
    write_table(tmp_path / "here", {"utt0": values["utt1"]})
    source = script(tmp_path, "utt0 feats.ark:5", "utt1 no.ark:5")
    monkeypatch.chdir(tmp_path / "here")
    ds = sk.open(source, format=sk.formats.Kaldi(holder="matrix"))
    assert np.array_equal(ds[0][1], values["utt1"])
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    assert np.array_equal(ds[0][1], values["utt0"])
    assert np.array_equal(ds[[0]][0][1], values["utt0"])
    with pytest.raises(sk.CorruptRecord, match=rf"{tmp_path}/else/no\.ark.*the script, '{tmp_path}'"):
        ds[1]


def test_ranges_read_parts(tmp_path: Path) -> None:
    value = np.arange(12, dtype="f4").reshape(6, 2)
    archive, _ = write_table(tmp_path, {"a": value})
    texts = {"[1:3]": value[1:4], "[,1:1]": value[:, 1:], "[:,0:0]": value[:, :1], "[2:7,0:1]": value[2:]}
    ds = sk.open(script(tmp_path, *(f"u{n} {archive}:2{text}" for n, text in enumerate(texts))))
    with pytest.warns(sk.errors.KaldiWarning, match="clipped"):
        found = list(ds)
    assert all(np.array_equal(part, wanted) for (_, part), wanted in zip(found, texts.values(), strict=True))
    with pytest.warns(sk.errors.KaldiWarning, match="clipped"):
        assert sk.kaldi.shapes(ds).tolist() == [list(wanted.shape) for wanted in texts.values()]  # type: ignore[union-attr]
    for spec in ("scp:", "scp,p:"):
        path = script(tmp_path, f"a {archive}:2[4:99]").replace("scp:", spec)
        with pytest.raises(sk.CorruptRecord, match=r"the range \[4:99\] must lie in the 6 rows"):
            sk.open(path, format=sk.formats.Kaldi(holder="matrix"))[0]


LINES = {
    "": "the line is empty",
    "utt": "has a key and no filename",
    "a\x01 b": "control characters",
    "a -": "standard input",
    "a x:1[": "there is no file",
    "a [1:2]": "one '\\['",
    "a | cat": "is not an rxfilename",
    "a no/such.ark:5": "the folder '.*/no' does not exist",
    "a {}:999": "byte 999: expected an object, found the end of the file at byte",
    "a {}:7": "Before the offset stands",
    "a {}": "must name the offset of the entry",
    "a false |": "PipeRefused",
    "a {}/": "is not a folder|it is a folder|does not exist",
}


@pytest.mark.parametrize(("line", "told"), LINES.items())
def test_a_line_that_cannot_be_read_is_an_error_with_its_place(tmp_path: Path, line: str, told: str) -> None:
    archive, _ = write_table(tmp_path, matrices(2))
    good = f"good {archive}:5"
    ds = sk.open(
        script(tmp_path, good, line.format(archive), "other" + good), format=sk.formats.Kaldi(holder="matrix")
    )
    assert len(ds) == 3
    assert np.array_equal(ds[0][1], ds[2][1])
    for read in (lambda: ds[1], lambda: list(ds), lambda: ds[[2, 1]]):
        with pytest.raises(sk.CorruptRecord, match=rf"(?s)a\.scp: record 1 at byte {len(good) + 1} .*{told}"):
            read()


def test_the_option_p_leaves_out_what_cannot_be_read(tmp_path: Path) -> None:
    archive, _ = write_table(tmp_path, matrices(2))
    lines = (f"a {archive}:5", "b no.ark:5", f"c {archive}:5", "d no.ark:5")
    source = script(tmp_path, *lines).replace("scp:", "scp,p:")
    ds = sk.open(source)
    with pytest.warns(
        sk.errors.KaldiWarning, match=r"record [13] at byte .* is left out: DataNotFound: .*no\.ark"
    ):
        assert [record is sk.HOLE for record in ds] == [False, True, False, True]
    loader = sk.Loader(ds, batch_size=2, collate=list)
    with pytest.warns(sk.errors.KaldiWarning, match="left out"):
        assert [[key for key, _ in batch] for batch in loader] == [["a"], ["c"]]
    assert loader.report()["holes"] == 2
    with pytest.warns(sk.errors.KaldiWarning, match="left out"):
        shapes = sk.kaldi.shapes(ds)
    assert shapes == [(1, 3), None, (1, 3), None]
    assert list(ds.keys()) == ["a", "b", "c", "d"]
    assert ds.fingerprint == sk.open(source.replace("scp,p:", "scp:")).fingerprint
    found: list[sk.CorruptRecord] = []
    assert sk.open(source, errors=found.append)[1] is None
    assert found[0].row == 1
    with pytest.raises(sk.CorruptRecord, match="PipeRefused"):
        sk.open(
            script(tmp_path, "a sox x |").replace("scp:", "scp,p:"), format=sk.formats.Kaldi(holder="wave")
        )[0]


def test_commands_run_only_with_leave(tmp_path: Path) -> None:
    body = dumped("matrix", np.ones((2, 2)))
    (tmp_path / "m").write_bytes(body)
    (tmp_path / "m.gz").write_bytes(gzip.compress(body))
    lines = (
        f"a gunzip -c {tmp_path}/m.gz |",
        f"b cat {tmp_path}/m|",
        f"c head -c 999 {tmp_path}/m |",
        "d exit 3 |",
    )
    ds = sk.open(script(tmp_path, *lines))
    assert ds[0][1].shape == ds[1][1].shape == (2, 2)
    with pytest.raises(sk.CorruptRecord, match=r"PipeRefused.*pipes='allow'"):
        ds[2]
    ds = sk.open(script(tmp_path, *lines), format=sk.formats.Kaldi(pipes="allow"))
    assert np.array_equal(ds[2][1], np.ones((2, 2)))
    with pytest.raises(sk.CorruptRecord, match=r"PipeFailed.*exit code 3"):
        ds[3]
    with pytest.raises(sk.errors.InvalidArgument, match="pipes must be"):
        sk.open(script(tmp_path, *lines), format=sk.formats.Kaldi(pipes="maybe"))  # type: ignore[arg-type]


def test_an_indexed_archive_that_changes_is_stale(tmp_path: Path) -> None:
    archive, _ = write_table(tmp_path, matrices())
    ds = sk.open(archive)
    assert ds[6][0] == "utt6"
    archive.write_bytes(archive.read_bytes()[:-50])
    with pytest.raises(sk.IndexStale):
        ds[6]
    assert len(sk.open(archive)) == len(ds)
    with pytest.raises(sk.CorruptRecord, match=r"feats\.ark \(key 'utt6'\): byte \d+: expected"):
        sk.open(archive)[6]


def test_an_archive_below_a_script_that_is_cut_is_an_error_and_one_that_grows_is_none(tmp_path: Path) -> None:
    archive, source = write_table(tmp_path, matrices())
    ds = sk.open(source)
    first = ds[6]
    whole = archive.read_bytes()
    archive.write_bytes(whole + b"more ")
    assert same(ds[6], first)
    archive.write_bytes(whole[:-50])
    with pytest.raises(sk.CorruptRecord, match=r"feats\.ark \(key 'utt6'\).*the end of the file"):
        ds[6]
    archive.write_bytes(b"")
    with pytest.raises(sk.CorruptRecord, match="found the end of the file at byte 0"):
        ds[6]
    archive.unlink()
    with pytest.raises(sk.CorruptRecord, match="there is no file"):
        ds[6]
    archive.write_bytes(whole)
    assert same(ds[6], first)


def test_an_archive_that_was_written_again_with_other_keys_gives_no_wrong_record(tmp_path: Path) -> None:
    ones = {f"utt{n}": np.full((2, 2), n, "f4") for n in range(4)}
    archive, source = write_table(tmp_path, ones)
    aged(source)
    aged(archive)
    ds = sk.open(source)
    assert ds.key("utt1")[1][0, 0] == 1
    data = dict(reversed(ones.items()))
    again, _ = write_table(tmp_path, data, name="again")
    archive.write_bytes(again.read_bytes())
    for row in range(4):
        with pytest.raises(sk.CorruptRecord, match=r"expected the key, found b'utt\d ', and .*`touch` it"):
            ds[row]
    aged(archive, OLD - 9)
    assert sk.open(source)[0][1][0, 0] == 3, "an older archive may have other keys: those of the script count"


def test_keys_renamed_in_a_script_are_keys(tmp_path: Path) -> None:
    _, source = write_table(tmp_path, matrices(3))
    renamed = tmp_path / "renamed.scp"
    renamed.write_text("".join(f"sp0.9-{line}\n" for line in source.read_text().splitlines()))
    ds = sk.open(renamed)
    assert list(ds.keys()) == ["sp0.9-utt0", "sp0.9-utt1", "sp0.9-utt2"]
    assert ds.key("sp0.9-utt2")[1].shape == (3, 3)


def test_windows_line_ends_other_alphabets_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    archive, _ = write_table(tmp_path, matrices(1))
    path, wanted = tmp_path / "a.scp", ["a", "ключ", "c\udc80"]
    path.write_bytes(b"".join(os.fsencode(f"{key} {archive}:5\r\n") for key in wanted))
    ds = sk.open(path)
    keys = ds.keys()
    assert list(keys) == wanted
    assert [ds.key(key)[0] for key in wanted] == wanted
    assert all(key in keys for key in wanted)


def test_keys_of_a_list_of_rows(tmp_path: Path) -> None:
    archive, _ = write_table(tmp_path, matrices(5))
    keys = sk.open(archive).keys()
    assert keys[[3, -1, 3]] == keys[np.array([3, 4, 3])] == ["utt3", "utt4", "utt3"]
    assert keys[[]] == []
    with pytest.raises(IndexError):
        keys[[0, 5]]


def test_keys_that_several_entries_have_warn(tmp_path: Path) -> None:
    archive, _ = write_table(tmp_path, matrices(1))
    with pytest.warns(
        sk.errors.DuplicateKeys, match=r"(?s)2 records share 1 .*'a': .*a\.scp row 0, .*a\.scp row 2"
    ):
        ds = sk.open(script(tmp_path, f"a {archive}:5", f"b {archive}:5", f"a {archive}:5"))
    with pytest.raises(sk.errors.AmbiguousKey):
        ds.key("a")
    keys = ds.keys()
    assert "a" in keys


def test_no_object_is_read_to_index_keys(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds = sk.open(
            script(tmp_path, *(f"utt{n} /no/such:{n}" for n in range(50))),
            format=sk.formats.Kaldi(holder="matrix"),
        )
    keys = ds.keys()
    assert "utt7" in keys
    with pytest.raises(sk.CorruptRecord, match="/no/such"):
        ds.key("utt7")
