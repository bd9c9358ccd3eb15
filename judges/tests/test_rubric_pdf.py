"""PDFs, which anybody may have written, are read in a process that can do nothing else."""

from __future__ import annotations

import io
import tempfile

import pypdfium2
import pytest
from PIL import Image

from annotation.formats.pdf_text import MOST_PAGES, UNREADABLE, text_of
from judges.llm import CallFailed
from judges.scorers.rubric.confinement import MEGABYTE, ProcessLimits
from judges.scorers.rubric.pdf import read_pdf
from judges.scorers.rubric.pdf_child import PAGES_SHOWN

pytestmark = pytest.mark.slow


def document(*texts: str, width: int = 612, height: int = 792) -> bytes:
    """A PDF of one page for each text, written by hand: the shortest that readers take."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for text in texts:
        content = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode()
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents {len(objects)} 0 R "
        objects.append(page.encode() + b"/Resources << /Font << /F1 3 0 R >> >> >>")
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    written = bytearray(b"%PDF-1.4\n")
    places = []
    for number, one in enumerate(objects, 1):
        places.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    start = len(written)
    written += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    written += b"".join(b"%010d 00000 n \n" % place for place in places)
    written += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)
    return bytes(written)


def encrypted() -> bytes:
    """One that asks for a password: an encryption that no empty password opens."""
    plain = document("Secret")
    entry = b"<< /Filter /Standard /V 1 /R 2 /P -44 /O <" + b"41" * 32 + b"> /U <" + b"42" * 32 + b"> >>"
    return plain.replace(b"/Root 1 0 R >>", b"/Root 1 0 R /Encrypt " + entry + b" /ID [<00> <00>] >>")


def size_of(picture: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(picture)).size


def test_text_and_pictures_of_every_page():
    text, pictures = read_pdf(document("Lamps", "Chairs"))

    assert text.split() == ["Lamps", "Chairs"]
    assert [size_of(one) for one in pictures] == [(1224, 1584)] * 2  # 8.5 x 11 inches at 144 dpi


def test_a_hundred_pages_of_text_and_fifty_pictures_and_no_more():
    text, pictures = read_pdf(document(*(f"page{number}" for number in range(110))))

    assert text.split() == [f"page{number}" for number in range(MOST_PAGES)]
    assert len(pictures) == PAGES_SHOWN == 50


@pytest.mark.parametrize("data", [b"", b"%PDF-1.4", b"<html>Not found</html>", document("x")[:200], b"\0" * 5000])
def test_a_broken_one_says_so(data):
    text, pictures = read_pdf(data)

    assert text.startswith("(This PDF could not be read: ")
    assert pictures == []


def test_one_with_a_password_says_so():
    text, pictures = read_pdf(encrypted())

    assert "could not be read" in text
    assert "password" in text.lower()
    assert pictures == []


def test_people_and_models_are_shown_the_same_text():
    data = document("Lamps", "Chairs) Tj 5000 0 Td (beside the page")

    assert text_of(data).split() == ["Lamps", "Chairs"]
    assert read_pdf(data)[0].split() == ["Lamps", "Chairs"]


def test_a_page_that_is_broken_costs_no_other():
    data = document("Lamps", "Chairs", "Tables").replace(b"/Kids [5 0 R 7 0 R 9 0 R]", b"/Kids [5 0 R 1 0 R 9 0 R]")

    assert text_of(data).strip("\f").split("\f") == ["Lamps", UNREADABLE, "Tables"]
    text, pictures = read_pdf(data)
    assert text.split("\n\n") == ["Lamps", UNREADABLE, "Tables"]
    assert len(pictures) == 2


def test_one_without_text_says_so():
    text, pictures = read_pdf(document(""))

    assert "has no text" in text
    assert len(pictures) == 1


def test_a_page_of_a_square_kilometre_is_shown_small():
    _, (picture,) = read_pdf(document("Large", width=2_000_000, height=2_000_000))

    width, height = size_of(picture)
    assert width * height <= 12_100_000


def test_one_that_takes_too_long_or_too_much_is_ended():
    many = document(*["page"] * 60)

    assert "took more than 0.1 seconds" in read_pdf(many, ProcessLimits(wall=0.1))[0]
    assert (
        "could not be read" in read_pdf(document("x", width=3000, height=3000), ProcessLimits(memory=90 * MEGABYTE))[0]
    )


def test_a_disk_that_takes_no_more_is_no_fault_of_the_document(tmp_path, monkeypatch):
    with pytest.raises(CallFailed, match="is full"):
        read_pdf(document("x"), ProcessLimits(file=100))  # bytes that any one file may have
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(CallFailed, match="on this machine: No such file"):
        read_pdf(document("x"))


def test_one_that_is_too_large_is_not_begun(monkeypatch):
    text, pictures = read_pdf(b"%PDF-" + bytes(100 * MEGABYTE))

    assert "more than" in text
    assert pictures == []


def test_the_reader_would_read_the_same_here():
    """That what the test documents say is what they are, by the library itself."""
    assert len(pypdfium2.PdfDocument(document("a", "b"))) == 2
