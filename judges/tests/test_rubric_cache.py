"""Pages that were kept: their addresses, files and pictures."""

from __future__ import annotations

import base64
import hashlib
import io
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from annotation.formats import cached_pages
from judges.scorers.rubric import pages, pictures
from judges.scorers.rubric.pages import CacheFileSys, Index, PageMissing, StoredPages
from judges.tests.rubric_fakes import picture

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no failure
URL = "https://shop.example/lamps"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
WORDS = st.text("abcxyz019-_", min_size=1, max_size=6)
# Addresses without percent-encoding, in which everything is said once.
PLAIN = st.builds(
    lambda scheme, www, host, path, query, slash, fragment: (
        f"{scheme}://{www}{host}.example/{'/'.join(path)}{slash if path else ''}"
        + ("?" + "&".join(f"{name}={value}" for name, value in query) if query else "")
        + (f"#{fragment}" if fragment else "")
    ),
    st.sampled_from(["http", "https"]),
    st.sampled_from(["", "www."]),
    WORDS,
    st.lists(WORDS, max_size=3),
    st.lists(st.tuples(WORDS, WORDS), max_size=3),
    st.sampled_from(["", "/"]),
    st.just("") | WORDS,
)


def size_of(jpeg):
    return Image.open(io.BytesIO(jpeg)).size


def pixel(jpeg):
    return Image.open(io.BytesIO(jpeg)).convert("RGB").getpixel((0, 0))


# --- addresses ---


@PATIENT
@given(PLAIN)
def test_the_simple_form_of_a_simple_form_is_itself(url):
    form = pages.simplify(url)
    assert pages.simplify(form) == form


@PATIENT
@given(PLAIN)
def test_scheme_www_case_fragment_slash_and_tracking_make_no_difference(url):
    url = url.partition("#")[0].partition("?")[0]
    form = pages.simplify(url)
    scheme, _, rest = url.partition("://")
    bare = rest.removeprefix("www.")
    for other in (f"http://{bare}", f"https://www.{bare}", f"{scheme}://{bare.upper()}", f"{url}#part"):
        assert pages.simplify(other) == form
    assert pages.simplify(f"{url}?utm_source=chatgpt.com") == form
    assert pages.simplify(f"{url.removesuffix('/')}/") == form


@PATIENT
@given(PLAIN)
def test_removing_tracking_twice_removes_nothing_more(url):
    once = pages.remove_tracking(f"{url.partition('#')[0]}{'&' if '?' in url else '?'}utm_medium=a")
    assert "utm_" not in once
    assert pages.remove_tracking(once) == once


@PATIENT
@given(TEXTS)
def test_no_text_breaks_the_addresses(text):
    for made in (text, f"https://{text}", f"https://x.example/{text}", f"https://[{text}"):
        pages.simplify(made)
        cached_pages.stem(made)
        pages.unescape_markdown(made)
        written = list(pages.list_variants(made))
        assert len(written) == len(set(written))
        Index({made: "web"}).find(text)


@pytest.mark.parametrize("url", ["\udcff", "https://x.example/\udcff?a=\udcff&b=%ff"])
def test_halves_of_characters_break_nothing(url):
    assert Index({url: "web"}).find(url) == url
    assert len(cached_pages.stem(url)) == 32
    assert list(pages.list_variants(url))


@PATIENT
@given(PLAIN)
def test_every_stored_address_is_found_however_it_is_written(url):
    index = Index({url: "web"})
    assert index.find(url) == url
    assert index.find(f"  {url}\n") == url
    for variant in pages.list_variants(url):
        assert index.find(variant) == url
    assert index.find("https://another.example") is None


def test_the_order_of_parameters_matters():
    assert Index({"https://a.example/?a=1&b=2": "web"}).find("https://a.example/?b=2&a=1") is None


def test_an_exact_address_comes_before_a_similar_one():
    index = Index({"https://a.example/x": "web", "http://a.example/x": "pdf"})
    assert index.find("http://a.example/x") == "http://a.example/x"
    assert index.find("http://www.a.example/X") == "https://a.example/x"


def test_variants_find_what_the_simple_form_does_not():
    stored, asked = "https://a.example/All%25", "https://a.example/All%2525"
    assert pages.simplify(asked) not in (stored, pages.simplify(stored))
    assert Index({stored: "web"}).find(asked) == stored


def test_a_very_long_address_is_compared_as_it_is():
    long = "https://a.example/" + "a/" * 50_000
    index = Index({long: "web"})
    assert index.find(long) == long
    assert index.find(long.upper()) is None
    assert list(pages.list_variants(long)) == []


@pytest.mark.parametrize(
    ("escaped", "plain"),
    [
        (r" https://a.example/b\_c\(d\) ", "https://a.example/b_c(d)"),
        (r"https://a.example/b\c", r"https://a.example/b\c"),
    ],
)
def test_backslashes_of_markdown_go_and_others_stay(escaped, plain):
    assert pages.unescape_markdown(escaped) == plain


# --- a folder ---


def test_what_was_put_and_saved_is_there_again(tmp_path):
    cache = CacheFileSys(tmp_path / "new" / "folder")
    cache.put_web(f"{URL}/#top", "Lamps — größer", picture(30, 20))
    cache.put_pdf("https://shop.example/a.pdf", b"%PDF-1.7")
    cache.save()
    again = CacheFileSys(str(tmp_path / "new" / "folder"))
    text, screenshot = again.get_web(URL)
    assert text == "Lamps — größer"
    assert size_of(screenshot) == (30, 20)
    assert screenshot.startswith(b"\xff\xd8")
    assert again.get_pdf("http://www.shop.example/A.pdf") == b"%PDF-1.7"
    assert again.get_all_urls() == [f"{URL}/#top", "https://shop.example/a.pdf"]
    assert again.summary() == {"total_urls": 2, "web_pages": 1, "pdf_pages": 1}
    assert (again.has(URL), again.has("https://shop.example/a.pdf")) == ("web", "pdf")
    assert (again.has_web(URL), again.has_pdf(URL), again.has("https://nowhere.example")) == (True, False, None)


def test_files_are_named_by_the_address(tmp_path):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://shop.example/a%20b/#x", "text", picture())
    cache.save()
    name = hashlib.md5(b"https://shop.example/a b").hexdigest()
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(["index.json", f"{name}.txt", f"{name}.jpg"])
    assert json.loads((tmp_path / "index.json").read_text()) == {"https://shop.example/a%20b/#x": "web"}


def test_an_index_of_decoded_addresses_is_read_too(tmp_path):
    decoded = "https://shop.example/100%25"  # of .../100%2525: its files are named by the address as it stands here
    stem = hashlib.md5(decoded.encode()).hexdigest()
    (tmp_path / f"{stem}.pdf").write_bytes(b"%PDF-")
    (tmp_path / "index.json").write_text(json.dumps({decoded: "pdf"}))
    assert CacheFileSys(tmp_path).get_pdf(decoded) == b"%PDF-"


def test_nothing_is_in_the_index_before_it_is_saved(tmp_path):
    CacheFileSys(tmp_path).put_pdf(URL, b"%PDF-")
    assert CacheFileSys(tmp_path).get_all_urls() == []


def test_putting_a_page_again_replaces_it_whatever_it_was(tmp_path):
    cache = CacheFileSys(tmp_path)
    cache.put_web(URL, "old", picture())
    cache.put_web(URL, "new", picture())
    assert cache.get_web(URL)[0] == "new"
    cache.put_pdf(URL, b"%PDF-")
    assert (cache.has(URL), cache.get_all_urls()) == ("pdf", [URL])


def test_a_page_that_is_not_there_is_a_key_error_that_names_it(tmp_path):
    cache = CacheFileSys(tmp_path)
    cache.put_pdf(URL, b"%PDF-")
    with pytest.raises(KeyError) as missing:
        cache.get_web(URL)
    assert URL in str(missing.value)
    (file,) = tmp_path.glob("*.pdf")
    file.unlink()
    with pytest.raises(PageMissing):
        cache.get_pdf(URL)


@pytest.mark.parametrize("suffix", [".txt", ".jpg"])
def test_entries_without_their_files_are_left_out_with_a_warning(tmp_path, suffix, caplog):
    cache = CacheFileSys(tmp_path)
    cache.put_web(URL, "text", picture())
    cache.save()
    (file,) = tmp_path.glob(f"*{suffix}")
    file.unlink()
    assert CacheFileSys(tmp_path).get_all_urls() == []
    assert URL in caplog.text


@pytest.mark.parametrize("index", [b"{", b"[1]", b"\xff\xfe", b'{"a": "html", "b": 7}', b"[" * 100_000, b""])
def test_a_broken_index_starts_empty_with_a_warning(tmp_path, index, caplog):
    (tmp_path / "index.json").write_bytes(index)
    assert CacheFileSys(tmp_path).get_all_urls() == []
    assert caplog.records


def test_clearing_deletes_the_pages_and_nothing_else(tmp_path):
    (tmp_path / "notes.md").write_text("mine")
    cache = CacheFileSys(tmp_path)
    cache.put_web(URL, "text", picture())
    cache.save()
    cache.clear()
    assert cache.has(URL) is None
    assert [file.name for file in tmp_path.iterdir()] == ["notes.md"]


def test_a_text_that_is_no_utf8_is_read_with_marks_where_it_is_not(tmp_path):
    cache = CacheFileSys(tmp_path)
    cache.put_web(URL, "text", picture())
    (file,) = tmp_path.glob("*.txt")
    file.write_bytes(b"caf\xe9")
    assert cache.get_web(URL)[0] == "caf\ufffd"


# --- pages that lie elsewhere ---


def test_pages_of_attachments_are_read_by_their_names():
    stem = cached_pages.stem(URL)
    files = {f"{stem}.txt": lambda: b"text", f"{stem}.jpg": picture}
    kinds = {URL: "web", "https://half.example": "web", "https://odd.example": "html"}
    stored = StoredPages(kinds, files)
    assert stored.get_all_urls() == [URL]
    assert stored.get_web("http://www.shop.example/lamps/") == ("text", picture())
    with pytest.raises(PageMissing):
        stored.get_pdf(URL)


# --- pictures ---


def test_a_screenshot_is_kept_as_jpeg_with_white_behind_what_is_transparent():
    assert pixel(pictures.convert_for_cache(picture(colour=(255, 0, 0, 0), mode="RGBA"))) == (255, 255, 255)
    assert pixel(pictures.convert_for_cache(picture(colour=(200, 0), mode="LA"))) == (255, 255, 255)
    red = pixel(pictures.convert_for_cache(picture(colour=(255, 0, 0, 255), mode="RGBA")))
    assert red[0] > 240
    assert red[1] < 20


@pytest.mark.parametrize("mode", ["1", "L", "P", "I;16", "RGB", "CMYK"])
def test_every_mode_becomes_rgb(mode):
    kind = "JPEG" if mode == "CMYK" else "PNG"
    data = picture(mode=mode, colour=0, kind=kind)
    assert Image.open(io.BytesIO(pictures.convert_for_cache(data))).mode == "RGB"


def test_sixteen_bits_keep_their_grey():
    grey = pixel(pictures.convert_for_cache(picture(mode="I;16", colour=0x8000)))
    assert all(abs(value - 128) < 4 for value in grey)


def test_a_screenshot_may_be_base64_or_a_data_url():
    encoded = base64.b64encode(picture(5, 5)).decode()
    for given_as in (encoded, f"data:image/png;base64,{encoded}", f"{encoded[:10]}\n{encoded[10:]}"):
        assert size_of(pictures.convert_for_cache(given_as)) == (5, 5)


@pytest.mark.parametrize("broken", [b"", b"<html>", b"\x89PNG\r\n\x1a\n", picture()[:45], "no base64!", "aGVsbG8="])
def test_what_is_no_picture_is_refused_before_anything_is_written(broken, tmp_path):
    cache = CacheFileSys(tmp_path)
    with pytest.raises(pictures.PictureError):
        cache.put_web(URL, "text", broken)
    assert list(tmp_path.iterdir()) == []
    assert cache.has(URL) is None


@PATIENT
@given(st.binary(max_size=200), st.integers(0, 300))
def test_no_bytes_break_the_decoder(noise, at):
    whole = picture(16, 16)
    pictures.convert_for_model(whole[:at] + noise + whole[at:])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((1100, 50), (1100, 50)),
        ((2200, 1000), (1100, 500)),
        ((10, 10_500), (10, 10_000)),
        ((1200, 11_000), (1100, 10_000)),
    ],
)
def test_a_model_is_shown_pictures_of_a_bounded_size(before, after):
    assert size_of(pictures.convert_for_model(picture(*before))) == after


def test_what_cannot_be_decoded_is_shown_as_it_is_and_too_many_pixels_are_an_error():
    assert pictures.convert_for_model(b"\xff\xd8broken") == b"\xff\xd8broken"
    for width in (40_001, 100_001):
        with pytest.raises(pictures.TooManyPixels):
            pictures.convert_for_model(picture(width, 1_000, mode="1", colour=0))


# --- texts ---


def test_only_texts_that_are_too_long_are_shortened_and_lose_their_white_space():
    assert pages.shorten("a  b\n") == "a  b\n"
    spaced = "word \n " * 80_000
    assert pages.shorten(spaced) == " ".join(["word"] * 80_000)
    long = pages.shorten("x" * 400_100)
    assert "100 characters left out" in long
    assert len(long) < 400_100
