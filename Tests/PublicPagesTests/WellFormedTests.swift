import Foundation
import GateSteps
import GateVocabulary
import Testing

@testable import PublicPages

/// Every page in every language, read by a parser that forgives nothing.
@Suite struct WellFormedTests {

    private static func pages() -> [(name: String, texts: PageTexts, bytes: [UInt8])] {
        var all: [(String, PageTexts, [UInt8])] = []
        for texts in PageTexts.byLanguage.values {
            for settings in [nil, "https://example.com/?a=1&b=\"<2>'"] {
                let pages = Pages(brand: "R & <D>", preferencesURL: settings)
                all.append(("unknown", texts, pages.unknown(in: texts)))
                all.append(("busy", texts, pages.busy(in: texts)))
                all.append(("wrong", texts, pages.wrong(in: texts)))
                for category in Category.allCases {
                    for channel in Channel.allCases {
                        for (isOff, until) in [(false, nil), (true, nil), (true, Instant(seconds: 1))] {
                            for notice in [Pages.Notice.none, .undone, .tooLate] {
                                let standing = LinkStanding(
                                    category: category, channel: channel, locale: nil, isOff: isOff,
                                    undoableUntil: until, wasMuted: notice != .none,
                                    isUndone: notice == .undone && !isOff)
                                all.append(
                                    ("link \(standing)", texts, pages.link(standing, notice, in: texts)))
                            }
                        }
                    }
                }
            }
        }
        return all
    }

    /// Elements in the order they begin, with their attributes; `nil` where the page is not well formed.
    private static func elements(of page: String) -> [(name: String, attributes: [String: String])]? {
        guard page.hasPrefix("<!DOCTYPE html>\n") else { return nil }
        var rest = page.dropFirst("<!DOCTYPE html>\n".count)
        var open: [String] = []
        var found: [(String, [String: String])] = []
        while let start = rest.firstIndex(of: "<") {
            guard rest[..<start].allSatisfy({ $0 != ">" && $0 != "\"" && $0 != "'" }) else { return nil }
            guard let end = rest[start...].firstIndex(of: ">") else { return nil }
            let tag = rest[rest.index(after: start)..<end]
            rest = rest[rest.index(after: end)...]
            if tag.hasPrefix("/") {
                guard open.popLast() == String(tag.dropFirst()) else { return nil }
                continue
            }
            guard let match = tag.wholeMatch(of: /([a-z][a-z0-9]*)((?: [a-z-]+="[^"<>]*")*)/) else {
                return nil
            }
            let pairs = match.2.matches(of: /([a-z-]+)="([^"]*)"/).map { (String($0.1), String($0.2)) }
            guard Set(pairs.map(\.0)).count == pairs.count else { return nil }
            let name = String(match.1)
            found.append((name, Dictionary(uniqueKeysWithValues: pairs)))
            if !["meta", "link", "input"].contains(name) { open.append(name) }
        }
        return open.isEmpty && rest == "\n" ? found : nil
    }

    @Test func `every page is well formed and has what a reader needs`() throws {
        let pages = Self.pages()
        #expect(pages.count > 800)
        for page in pages {
            let text = String(decoding: page.bytes, as: UTF8.self)
            let elements = try #require(Self.elements(of: text), "\(page.name): \(text)")
            func all(_ name: String) -> [[String: String]] {
                elements.filter { $0.name == name }.map(\.attributes)
            }
            #expect(all("html").map { $0["lang"] } == [page.texts.language])
            #expect(all("main").count == 1 && all("h1").count == 1 && all("title").count == 1)
            #expect(all("meta").contains { $0["charset"] == "utf-8" })
            #expect(
                all("meta").contains { $0["name"] == "viewport" && $0["content"]?.contains("width=") == true }
            )
            #expect(all("form").count == all("button").count && all("form").count <= 1)
            #expect(all("form").allSatisfy { $0["method"] == "post" && $0["action"] == nil })
            // Nothing runs and nothing comes from elsewhere.
            #expect(
                all("script").isEmpty && all("img").isEmpty && all("style").isEmpty && all("iframe").isEmpty)
            #expect(
                elements.allSatisfy { $0.attributes.keys.allSatisfy { !$0.hasPrefix("on") && $0 != "style" } }
            )
            #expect(all("link").map { $0["href"] } == [StyleSheet.name])
            #expect(!text.contains("&b=") && !text.contains("<2>"))
        }
    }

    @Test func `what is written is escaped, as text and as an attribute`() {
        let page = String(
            decoding: HTML.document(.element("p", ["title": "\"><script>&'"], .text("<b>&amp;\"'"))),
            as: UTF8.self)
        #expect(
            page
                == "<!DOCTYPE html>\n<p title=\"&quot;&gt;&lt;script&gt;&amp;&#39;\">&lt;b&gt;&amp;amp;&quot;&#39;</p>\n"
        )
    }

    /// WCAG 2.2, 1.4.3: what is read has 4.5 at least, and 1.4.11: what is a border or a ring has 3.
    @Test func `colours can be told apart in light and in dark`() throws {
        let schemes = StyleSheet.text.matches(of: /:root \{([^}]*)\}/).map { String($0.1) }
        #expect(schemes.count == 2)
        for scheme in schemes {
            let colours = Dictionary(
                uniqueKeysWithValues: scheme.matches(of: /--([a-z]+): #([0-9a-f]{6})/).map {
                    (String($0.1), UInt32($0.2, radix: 16)!)
                })
            func contrast(_ one: String, _ other: String) throws -> Double {
                let lights = [try #require(colours[one]), try #require(colours[other])].map(Self.luminance)
                return (lights.max()! + 0.05) / (lights.min()! + 0.05)
            }
            for text in ["ink", "quiet", "link"] { #expect(try contrast(text, "ground") >= 4.5, "\(text)") }
            #expect(try contrast("label", "button") >= 4.5)
            #expect(try contrast("line", "ground") >= 3)
            #expect(try contrast("button", "ground") >= 3)
        }
    }

    private static func luminance(_ colour: UInt32) -> Double {
        let parts = [16, 8, 0].map { shift -> Double in
            let part = Double(colour >> UInt32(shift) & 0xFF) / 255
            return part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4)
        }
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    }
}
