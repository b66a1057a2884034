"""Opens unsubscribe links in headless Chromium and uses them as people do.

    browse_pages.py FOLDER NAME=LINK ...

NAME is the page's language, or that and the channel of the link, as `en-email`. Each link is asked, muted, undone, undone again
where that is too late, and muted again: with a keyboard alone, at 320 px, with scripts off, in light and dark, and read as a screen
reader is given it. Each page that is met is held against the rules of axe for WCAG 2.2 AA, and what was painted is measured in its
screenshot. Pictures of pages that say different things differ, and those of a page that is opened again, or that scanners of links
have opened meanwhile, are the same. Prints a line for each thing that is wrong and a last one with what was looked at; ends with 1 when
anything was. FOLDER takes the screenshots.
"""

import collections
import io
import itertools
import json
import os
import pathlib
import sys
import urllib.parse
import urllib.request

import axe_playwright_python
from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

AXE = (pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# The narrowest page that WCAG 2.2, 1.4.10 asks for, and one of a desktop; CSS pixels.
WIDTHS = (320, 1280)
HEIGHT = 720
SCHEMES = ("light", "dark")
CONTRAST_MIN = 4.5
# A page fits with whatever a system's font is: these are of three makers, wide, tall and narrow.
FONTS = ("DejaVu Sans", "Noto Sans", "Liberation Sans")
SECONDS = 20

wrong = []
looked = collections.Counter()
# What each page looked like: by its name, and then by scheme and width.
seen = {}


def expect(what, is_so):
    looked["expectations"] += 1
    if not is_so:
        wrong.append(what)


def browser(folder, has_scripts):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--force-color-profile=srgb", "--disable-lcd-text", f"--user-data-dir={folder}",
                     "--disable-background-networking", "--disable-component-update", "--no-first-run"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        # Chromium's sandbox is not there for root.
        options.add_argument("--no-sandbox")
    if not has_scripts:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    service = webdriver.ChromeService(executable_path="/usr/bin/chromedriver")
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_page_load_timeout(SECONDS)
    return driver


def freeze_time(driver):
    """Shows one time of day, so that two pictures differ by what they say and not by when they were taken."""
    driver.execute_script("for (const time of document.querySelectorAll('time')) time.textContent = '12:00 (UTC)'")


def show(driver, width, scheme):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                           {"features": [{"name": "prefers-color-scheme", "value": scheme}]})


def tree(driver):
    """What a screen reader is given: (role, name, level) of each node that is not ignored."""
    nodes = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    read = []
    for node in nodes:
        if not node.get("ignored"):
            level = next((p["value"]["value"] for p in node.get("properties", []) if p["name"] == "level"), None)
            read.append((node["role"]["value"], node.get("name", {}).get("value", ""), level))
    return read


def luminance(colour):
    parts = [c / 255 for c in colour[:3]]
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one, other):
    """WCAG 2.2, contrast ratio."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def painted_contrast(picture, box):
    """The greatest contrast to the ground within a box: anti-aliased edges are between the two."""
    part = picture.crop(box)
    colours = part.getcolors(part.width * part.height)
    ground = max(colours)[1]
    return max(contrast(ground, colour) for _, colour in colours)


def measure(driver, name, folder):
    """Holds a picture of the page against what the page says is in it."""
    freeze_time(driver)
    picture = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    picture.save(folder / f"{name}.png")
    looked["screenshots"] += 1
    width, height = driver.execute_script("return [document.documentElement.scrollWidth, window.innerHeight]")
    visible = driver.execute_script("return document.documentElement.clientWidth")
    expect(f"{name}: {width} px are wider than the {visible} px there are", width <= visible)
    # All at once: asked one by one, the elements would take longer than all else here.
    elements = driver.execute_script(
        "return [...document.querySelectorAll('h1, p, dt, dd, button, a')].map(element => {"
        "const box = element.getBoundingClientRect();"
        "return [element.localName, element.innerText.trim(),"
        "box.left + scrollX, box.top + scrollY, box.right + scrollX, box.bottom + scrollY] })")
    expect(f"{name}: there is nothing on it", len(elements) > 2)
    for tag, text, left, top, right, bottom in elements:
        what = f"{name}: <{tag}> {text!r}"
        expect(f"{what} is beyond the edge", left >= 0 and right <= visible + 0.5)
        if tag == "button":
            expect(f"{what} is {bottom - top} px high", bottom - top >= 44)
        if bottom <= height and text:
            ratio = painted_contrast(picture, (int(left) + 2, int(top) + 2, int(right) - 2, int(bottom) - 2))
            expect(f"{what} was painted with a contrast of {ratio:.2f}", ratio >= CONTRAST_MIN)
    return picture


def hold(driver, name):
    """The rules of axe; the page's own policy forbids scripts, so they come by the driver."""
    driver.execute_script(AXE)
    found = driver.execute_async_script(
        "const done = arguments[1]; axe.run(document, {runOnly: arguments[0], resultTypes: ['violations', 'incomplete']})"
        ".then(done, error => done({error: String(error)}))", AXE_TAGS)
    if "error" in found:
        wrong.append(f"{name}: axe: {found['error']}")
        return
    looked["rules"] += len(found["passes"])
    looked["pages"] += 1
    for kind in ("violations", "incomplete"):
        for rule in found[kind]:
            targets = [node["target"] for node in rule["nodes"]]
            wrong.append(f"{name}: axe {kind}: {rule['id']}: {rule['help']} at {targets}")


def look(driver, name, language, folder, has_button):
    read = tree(driver)
    roles = [role for role, _, _ in read]
    expect(f"{name}: no `main` landmark in {roles}", "main" in roles)
    headings = [(text, level) for role, text, level in read if role == "heading"]
    expect(f"{name}: headings {headings}", len(headings) == 1 and headings[0][1] == 1 and headings[0][0])
    buttons = [text for role, text, _ in read if role == "button"]
    expect(f"{name}: buttons {buttons}", len(buttons) == int(has_button) and all(buttons))
    links = [text for role, text, _ in read if role == "link"]
    expect(f"{name}: links {links}", len(links) == 1 and all(links))
    # Whose messages: the brand of the bundle.
    expect(f"{name}: its title is {driver.title!r}", driver.title == f"{(headings or [('', 0)])[0][0]} – Drop")
    spoken = driver.find_element(By.TAG_NAME, "html").get_attribute("lang")
    expect(f"{name}: its language is {spoken}", spoken == language)
    pictures = {}
    for scheme in SCHEMES:
        for width in WIDTHS:
            show(driver, width, scheme)
            pictures[scheme, width] = measure(driver, f"{name}-{scheme}-{width}", folder)
            hold(driver, f"{name}-{scheme}-{width}")
    seen[name] = {key: (picture.size, picture.tobytes()) for key, picture in pictures.items()}
    for width in WIDTHS:
        expect(f"{name}: light and dark are one picture", seen[name]["light", width] != seen[name]["dark", width])
        grounds = [luminance(pictures[scheme, width].getpixel((1, 1))) for scheme in SCHEMES]
        expect(f"{name}: light and dark have the grounds {grounds}", grounds[0] > 0.8 and grounds[1] < 0.2)
    # Text twice as large still fits (WCAG 2.2, 1.4.4), as do lines, words and letters further apart (1.4.12).
    show(driver, WIDTHS[0], "light")
    widths = set()
    for font, style in itertools.product(FONTS, (
            "html { font-size: 200% }",
            "* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important } "
            "p { margin-bottom: 2em !important }")):
        style += f" body {{ font-family: '{font}' !important }}"
        fits = driver.execute_script(
            "const sheet = new CSSStyleSheet(); sheet.replaceSync(arguments[0]); document.adoptedStyleSheets = [sheet];"
            "const root = document.documentElement;"
            "const fits = root.scrollWidth <= root.clientWidth && [...document.querySelectorAll('button, dd, h1')]"
            ".every(e => e.scrollHeight <= e.clientHeight + 1 && e.scrollWidth <= e.clientWidth + 1);"
            "const word = document.createElement('span'); word.textContent = 'Unsubscribe'; document.body.append(word);"
            "const width = word.getBoundingClientRect().width; word.remove();"
            "document.adoptedStyleSheets = []; return [fits, width]", style)
        fits, width = fits
        widths.add(width)
        expect(f"{name}: {style} does not fit {WIDTHS[0]} px", fits)
    # A font that is not installed would be measured as another one.
    expect(f"{name}: the fonts {FONTS} give the widths {widths}", len(widths) == 2 * len(FONTS))
    reach_link(driver, name)


def reach_link(driver, name):
    """Goes to the one link with Tab, and leaves the focus where a page that was just opened has it."""
    for _ in range(4):
        ActionChains(driver).send_keys(Keys.TAB).perform()
        if driver.switch_to.active_element.tag_name == "a":
            break
    focused = driver.switch_to.active_element
    expect(f"{name}: Tab does not reach the link", focused.tag_name == "a")
    # WCAG 2.2, 2.5.8.
    expect(f"{name}: the link is {focused.rect['height']} px high", focused.rect["height"] >= 24)
    driver.execute_script("document.activeElement.blur(); getSelection().collapse(document.body, 0)")


def status(driver):
    return [text for role, text, _ in tree(driver) if role == "status"]


def wait(driver, condition):
    WebDriverWait(driver, SECONDS, poll_frequency=0.05).until(lambda _: condition())


def press(driver, name):
    """Goes to the one button with Tab, sees where the focus is, and presses Enter."""
    old = driver.find_element(By.TAG_NAME, "html")
    for _ in range(4):
        ActionChains(driver).send_keys(Keys.TAB).perform()
        if driver.switch_to.active_element.tag_name == "button":
            break
    focused = driver.switch_to.active_element
    expect(f"{name}: Tab does not reach the button", focused.tag_name == "button")
    box = focused.rect
    picture = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    # The ring is 3 px wide, 3 px outside the button.
    ground = picture.getpixel((1, 1))
    ring = picture.getpixel((int(box["x"] + box["width"] / 2), int(box["y"]) - 5))
    expect(f"{name}: the focus is not seen, {ring} on {ground}", contrast(ring, ground) >= 3)
    ActionChains(driver).send_keys(Keys.ENTER).perform()

    def is_gone():
        try:
            old.is_enabled()
        except Exception as error:
            return type(error).__name__ == "StaleElementReferenceException"
        return False

    wait(driver, is_gone)
    wait(driver, lambda: driver.execute_script("return document.readyState") == "complete")


def picture_now(driver, width=WIDTHS[0], scheme="light"):
    show(driver, width, scheme)
    freeze_time(driver)
    picture = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    return picture.size, picture.tobytes()


def scan(link):
    """What a mail program's scanner of links does: opens them, more than once, by GET and HEAD."""
    for method in ("GET", "HEAD", "GET", "GET"):
        with urllib.request.urlopen(urllib.request.Request(link, method=method), timeout=SECONDS) as answer:
            expect(f"a scanner's {method} is {answer.status}", answer.status == 200)
    looked["scans"] += 1


def use(driver, who, link, folder):
    language = who.split("-")[0]
    show(driver, WIDTHS[0], "light")
    driver.get(link)
    look(driver, f"{who}-asked", language, folder, True)
    expect(f"{who}: a status before anything was done", not status(driver))
    for name in ("muted", "undone", "too-late", "muted-again"):
        if name == "undone":
            stale = driver.current_window_handle
            driver.switch_to.new_window("tab")
            show(driver, WIDTHS[0], "light")
            driver.get(link)
        elif name == "too-late":
            # The tab that still shows the undo that was used in the other one.
            driver.close()
            driver.switch_to.window(stale)
            show(driver, WIDTHS[0], "light")
        press(driver, f"{who}-{name}")
        expect(f"{who}-{name}: the address is {driver.current_url}", driver.current_url.split("?")[0] == link)
        expect(f"{who}-{name}: nothing says what was done", len(status(driver)) == 1)
        if name != "muted-again":
            look(driver, f"{who}-{name}", language, folder, True)
        if name == "muted":
            quiet = driver.find_element(By.TAG_NAME, "button").value_of_css_property("background-color")
            expect(f"{who}-{name}: undo is drawn as loudly as stop: {quiet}", quiet.endswith(", 0)"))
        if name in ("undone", "muted", "too-late"):
            # Loading again shows the same and does nothing; nor does whatever opens the link.
            scan(link)
            driver.refresh()
            expect(f"{who}-{name}: another picture when loaded again",
                   picture_now(driver) == seen[f"{who}-{name}"]["light", WIDTHS[0]])
    told = status(driver)
    driver.refresh()
    expect(f"{who}: loading again says {status(driver)} instead of {told}", status(driver) == told)
    expect(f"{who}: muted again is another picture than muted",
           picture_now(driver) == seen[f"{who}-muted"]["light", WIDTHS[0]])


def compare(names):
    """Holds the pictures of pages that say different things against each other, at each width and in each scheme."""
    pairs = [(f"{who}-{one}", f"{who}-{other}") for who in names
             for one, other in itertools.combinations(("asked", "muted", "undone", "too-late"), 2)]
    pairs += [(f"{one}-{name}", f"{other}-{name}") for one, other in itertools.combinations(names, 2)
              for name in ("asked", "muted", "undone", "too-late")]
    pairs += [("unknown", f"{who}-asked") for who in names]
    for one, other in pairs:
        for key, picture in seen[one].items():
            looked["comparisons"] += 1
            expect(f"{one} and {other} are one picture in {key}", picture != seen[other][key])


def logs(driver, links):
    """Nothing but the pages and their style was asked for, and nothing of them was refused."""
    hosts = {urllib.parse.urlsplit(link).netloc for link in links}
    for line in driver.get_log("performance"):
        message = json.loads(line["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked = urllib.parse.urlsplit(message["params"]["request"]["url"])
            if asked.scheme in ("http", "https"):
                looked["requests"] += 1
                expect(f"asked {asked.netloc} for {asked.path}", asked.netloc in hosts)
    for line in driver.get_log("browser"):
        # Browsers ask for an icon of their own accord, and a page that is not there is one of those looked at.
        is_ours = "favicon" not in line["message"] and "status of 404" not in line["message"]
        expect(f"the browser says {line['message']}", not is_ours)


def main(arguments):
    folder = pathlib.Path(arguments[0])
    folder.mkdir(exist_ok=True)
    links = dict(argument.split("=", 1) for argument in arguments[1:])
    driver = browser(folder / "scripts", has_scripts=True)
    try:
        for who, link in links.items():
            use(driver, who, link, folder)
        any_link = next(iter(links.values()))
        driver.get(any_link[:-4] + ("AAAA" if any_link[-4:] != "AAAA" else "BBBB"))
        look(driver, "unknown", "en", folder, False)
        compare(list(links))
        logs(driver, links.values())
    finally:
        driver.quit()
    driver = browser(folder / "none", has_scripts=False)
    try:
        show(driver, WIDTHS[0], "dark")
        link = next(iter(links.values()))
        driver.get(link)
        for name in ("undone", "muted"):
            button = driver.find_element(By.TAG_NAME, "button")
            before = driver.title
            button.click()
            wait(driver, lambda: driver.title != before)
            expect(f"without scripts, {name}: nothing says what was done", len(status(driver)) == 1)
    finally:
        driver.quit()
    for line in wrong:
        print(line)
    print(json.dumps(dict(looked, links=len(links), wrong=len(wrong)), sort_keys=True))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
