import Foundation
import SealedFormat
import SealedPush
import Testing

@Suite struct HandbookExampleTests {
    @Test func `the page for app teams shows the code that is tested here`() throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let code = try String(
            contentsOf: tests.appendingPathComponent("HandbookExample.swift"), encoding: .utf8)
        let page = try String(
            contentsOf: tests.appendingPathComponent("../../Sources/sendgate/Sendgate.docc/ForApps.md"),
            encoding: .utf8)
        #expect(page.contains("```swift\n\(code)```\n"))
    }

    /// A file is compiled where its framework is alone; a page has what stands between its condition and the end of that.
    @Test(arguments: [
        ("HandbookIOS", "canImport(UserNotifications) && canImport(UIKit)", "IOSExtension", 400),
        ("HandbookExpo", "canImport(ExpoModulesCore)", "Expo", 60),
    ])
    func `a page for iOS teams shows the file that lies beside these tests`(
        name: String, condition: String, page: String, lineCountMin: Int
    ) throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let file = try String(contentsOf: tests.appendingPathComponent("\(name).swift"), encoding: .utf8)
        var lines = file.components(separatedBy: "\n")
        #expect(lines.count > lineCountMin)
        #expect(lines.removeFirst() == "#if \(condition)")
        #expect(lines.suffix(2) == ["#endif", ""])
        let code = lines.dropLast(2).map { line in
            #expect(line.isEmpty || line.hasPrefix("    "), "`\(line)`")
            return line.dropFirst(4) + "\n"
        }.joined()
        let page = try String(
            contentsOf: tests.appendingPathComponent("../../Sources/sendgate/Sendgate.docc/\(page).md"),
            encoding: .utf8)
        #expect(page.contains("```swift\n\(code)```\n"))
    }

    @Test(arguments: SealingSuite.allCases)
    func `the code shows what came once, and its own text for everything else`(suite: SealingSuite) throws {
        let scene = try Scene(suite)
        let opener = try scene.opener()
        let content = Array(#"{"title":"Money sent"}"#.utf8)
        let envelope = String(decoding: try scene.seal(content), as: UTF8.self)
        func shown(_ envelope: String?, now: UInt64 = Scene.now) -> [UInt8]? {
            text(of: envelope, opener: opener, now: now)
        }
        #expect(shown(envelope) == content)
        #expect(shown(envelope) == nil)
        #expect(shown(envelope, now: Scene.expiresAt) == nil)
        // Another envelope under the same message id.
        #expect(shown(String(decoding: try scene.seal(content), as: UTF8.self)) == nil)

        let own = try #require(shown(nil))
        #expect(String(decoding: own, as: UTF8.self).contains("Open the app"))
        #expect(shown("{}") == own)
        let stranger = try Scene(suite)
        #expect(shown(String(decoding: try stranger.seal(content), as: UTF8.self)) == own)
    }
}
