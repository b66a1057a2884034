import Foundation
import Testing

extension EndToEnd {
    /// The vectors of the sealed format, opened by libraries that share nothing with the gateway's or the app's.
    @Suite struct VectorTests {
        enum Peer: CaseIterable {
            /// `cryptography`, which is OpenSSL and Rust.
            case python
            /// Cloudflare's circl, and Go's own Ed25519.
            case go

            var command: [String] {
                switch self {
                case .python: [Machine.python, Machine.peer("check_vectors.py")]
                case .go: [Machine.openVectors]
                }
            }
        }

        private static let folder = "\(Machine.repository)/Tests/Fixtures/Vectors"
        static let files = ["sealed-p256", "sealed-x25519"].map { "\(folder)/\($0).json" }

        @Test(arguments: Peer.allCases)
        func `every vector holds`(peer: Peer) throws {
            let finished = try Finished.run(peer.command + Self.files, in: try Scratch(), within: 30)
            #expect(finished.ending == .exit(0), "\(finished.errors)")
            #expect(finished.output == "80 vectors hold\n")
        }

        /// What is put in place of another text of a file, and which vector must be named.
        static let changes: [(from: String, to: String, name: String)] = [
            (#""refused": "unknown_origin""#, #""refused": "forged_origin""#, "test: signed by a stranger: "),
            (#""d_test_1""#, #""d_test_3""#, "test: a content of 182 bytes: "),
            (#""content": "BSRDYo"#, #""content": "BSRDYp"#, "test: a content of 182 bytes: "),
            (#""proof": ""#, #""proof": "A"#, "test: a challenge: "),
            (#""now": 1790003600"#, #""now": 1790003599"#, "test: exp is reached: "),
        ]

        @Test(arguments: Peer.allCases, Self.files)
        func `a vector that does not hold is named`(peer: Peer, file: String) throws {
            let vectors = try String(contentsOfFile: file, encoding: .utf8)
            for change in Self.changes {
                let scratch = try Scratch()
                let changed = vectors.replacing(change.from, with: change.to)
                #expect(changed != vectors, "there is no `\(change.from)`")
                let path = try scratch.write("changed.json", changed)
                let finished = try Finished.run(peer.command + [path], in: scratch, within: 30)
                #expect(finished.ending == .exit(3), "\(finished.output)")
                #expect(finished.errors.contains(change.name), "\(change.from): \(finished.errors)")
            }
        }
    }
}
