import Foundation
import Testing

/// What a build compiles only under a condition is stated here a second time, by hand.
///
/// The tests run in one build: the branches that it leaves out, a release's above all, are in no program that a test
/// starts. So their text itself is compared.
@Suite struct ConditionalCodeTests {
    private static let stated: [String: [String]] = [
        "sendgate/Serving/ProvedBundles.swift": ["#if DEBUG", ".effects", "#else", ".reasons", "#endif"],
        "sendgate/Commands/BenchCommand.swift": [
            "#if DEBUG",
            #"Terminal.warning("this is a debug build, several times slower than `swift build -c release`")"#,
            "#endif",
        ],
        "SealedPush/SealedPushOpener.swift": crypto + foundation,
        "SealedPush/DeviceKey.swift": [
            "#if canImport(CryptoKit)", "public import CryptoKit", "#else", "public import Crypto", "#endif",
        ] + foundation,
        "SealedPush/OpenPush.swift": crypto,
        "SealedPush/TrustedKeyset.swift": crypto + foundation,
        "SealedPush/FileSeenMessages.swift": crypto + [
            "#if canImport(Darwin)", "import Darwin", "#elseif canImport(Android)", "import Android", "#else",
            "import Glibc", "#endif",
        ] + foundation + [
            "#if canImport(Darwin)", "if fcntl(descriptor, F_FULLFSYNC) == 0 { return }", "#endif",
        ],
    ]

    /// Apple's own CryptoKit where there is one; swift-crypto has the same interface.
    private static let crypto = [
        "#if canImport(CryptoKit)", "import CryptoKit", "#else", "import Crypto", "#endif",
    ]

    /// Apple's platforms have no `FoundationEssentials`.
    private static let foundation = [
        "#if canImport(FoundationEssentials)", "import FoundationEssentials", "#else",
        "import Foundation", "#endif",
    ]

    private static func conditional(in text: String) -> [String] {
        var depth = 0
        return text.split(separator: "\n").compactMap { line in
            let words = line.trimmingCharacters(in: .whitespaces)
            if words.hasPrefix("#if") { depth += 1 }
            defer { if words.hasPrefix("#endif") { depth -= 1 } }
            return depth > 0 && !words.hasPrefix("//") ? words : nil
        }
    }

    @Test func `what no test's build compiles says what is stated here`() throws {
        let root = LayerTests.root.appending(path: "Sources").path(percentEncoded: false)
        let files = try #require(FileManager.default.enumerator(atPath: root)).compactMap { $0 as? String }
            .filter { $0.hasSuffix(".swift") }
        #expect(files.count > 300)
        var found: [String: [String]] = [:]
        for file in files {
            let text = try String(contentsOfFile: "\(root)/\(file)", encoding: .utf8)
            // What depends on how a program was compiled, or by whose flags, hides from its tests as well.
            #expect(
                !text.contains("_isDebugAssertConfiguration") && !text.contains("assertionFailure(")
                    && !text.contains(/\bassert\(/), "\(file)")
            let lines = Self.conditional(in: text)
            if !lines.isEmpty { found[file] = lines }
        }
        #expect(found == Self.stated)
    }
}
