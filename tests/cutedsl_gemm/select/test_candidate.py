"""The file of candidates."""

from cutedsl_gemm.select.candidate import CANDIDATES, FILE, read, write


def test_what_is_written_is_read(tmp_path):
    file = tmp_path / "candidates.csv"
    write(file, CANDIDATES)
    assert read(file) == CANDIDATES
    assert file.read_text() == FILE.read_text()


def test_each_candidate_is_there_once_and_has_a_name_of_its_own():
    assert len({*CANDIDATES}) == len({each.name for each in CANDIDATES}) == len(CANDIDATES)
