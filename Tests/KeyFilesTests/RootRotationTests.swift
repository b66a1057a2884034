import Foundation
import GateVocabulary
import KeyFiles
import OpenSSLCrypto
import Testing

@Suite struct RootRotationTests {
    static let now = Instant(milliseconds: 1_795_000_000_000)

    private func withFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
        let path = NSTemporaryDirectory() + "sendgate-root-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try body(path)
    }

    private func names(_ path: String) throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: path))
    }

    private func bytes(_ key: PrivateKeyFile) -> [UInt8] { key.secret.withUnsafeBytes { Array($0) } }

    /// Keys with their root key apart from them, as a ceremony leaves them, and a new root key beside those.
    private struct Ceremony {
        var keys: String
        var oldRoot: String
        var newRoot: PrivateKeyFile

        init(in folder: String) throws {
            keys = "\(folder)/keys"
            oldRoot = "\(folder)/old"
            let paths = try PrivateKeyDirectory.initialize(at: keys, now: RootRotationTests.now)
            try FileManager.default.moveItem(atPath: paths[0], toPath: oldRoot)
            newRoot = try PrivateKeyFile.generate(.root, at: RootRotationTests.now.advanced(bySeconds: 60))
            _ = try newRoot.create(in: keys, wrappedBy: nil)
        }

        /// As a gateway reads them that is still given the old root key.
        func read() throws -> PrivateKeyDirectory {
            try PrivateKeyDirectory(at: keys, rootPath: oldRoot, acceptsThrowaway: false)
        }

        func readWithNewRootOnly() throws -> PrivateKeyDirectory {
            try PrivateKeyDirectory(at: keys, acceptsThrowaway: false)
        }

        @discardableResult
        func rotate() throws -> [PrivateKeyFile] {
            try RootRotation.wrap(Array(try read().keys.values.joined()), by: newRoot, in: keys)
        }
    }

    @Test func `every wrapped key is the same under the new root key, and the old one opens none`() throws {
        try withFolder { folder in
            let ceremony = try Ceremony(in: folder)
            let before = try ceremony.read()
            #expect(throws: KeyFileError.self) { try ceremony.readWithNewRootOnly() }
            let kept = try names(ceremony.keys).filter { name in
                ["origin", "trail", "root"].contains { name.hasPrefix($0) }
            }
            let rotated = try ceremony.rotate()
            let wrapped = rotated.filter(\.isWrapped)
            #expect(Set(wrapped.map(\.purpose)) == [.data, .index, .link])
            #expect(wrapped.allSatisfy { $0.wrappers == [ceremony.newRoot.id] })
            let after = try ceremony.readWithNewRootOnly()
            for purpose in KeyPurpose.ofGateway where purpose != .root {
                #expect(try after.current(purpose).id == before.current(purpose).id)
                #expect(bytes(try after.current(purpose)) == bytes(try before.current(purpose)))
            }
            let files = try names(ceremony.keys)
            #expect(kept.isSubset(of: files) && files.count == 6)
            // The old one alone, as a thief has it.
            try FileManager.default.removeItem(atPath: "\(ceremony.keys)/\(ceremony.newRoot.id).key")
            #expect(throws: KeyFileError.self) { try ceremony.read() }
        }
    }

    @Test func `what is wrapped as it should be is not written again`() throws {
        try withFolder { folder in
            let ceremony = try Ceremony(in: folder)
            let rotated = try ceremony.rotate()
            // A folder that is not there cannot be written to, nor read.
            let again = try RootRotation.wrap(rotated, by: ceremony.newRoot, in: "\(folder)/nowhere")
            #expect(again.map(\.wrappers) == rotated.map(\.wrappers))
        }
    }

    @Test func `at every moment of a rotation one of the two root keys opens everything`() throws {
        // As many files as a run that ended there had written of the new, and removed of the old.
        for (written, removed) in [(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (3, 3)] {
            try withFolder { folder in
                let ceremony = try Ceremony(in: folder)
                let path = ceremony.keys
                let before = "\(folder)/before"
                try FileManager.default.copyItem(atPath: path, toPath: before)
                try ceremony.rotate()
                let done = try names(path)
                let fresh = try done.subtracting(names(before)).sorted()
                let gone = try names(before).subtracting(done).sorted()
                #expect(fresh.count == 3 && gone.count == 3)
                // Back to where a run that was interrupted had left it.
                for name in fresh.dropFirst(written) {
                    try FileManager.default.removeItem(atPath: "\(path)/\(name)")
                }
                for name in gone.dropFirst(removed) {
                    try FileManager.default.copyItem(
                        atPath: "\(before)/\(name)", toPath: "\(path)/\(name)")
                }
                _ = try written == 3 ? ceremony.readWithNewRootOnly() : ceremony.read()
                // Run again, it ends where the first would have.
                try ceremony.rotate()
                #expect(try names(path) == done)
                _ = try ceremony.readWithNewRootOnly()
            }
        }
    }

    @Test func `half a file that a kill left is in nobody's way`() throws {
        try withFolder { folder in
            let ceremony = try Ceremony(in: folder)
            for key in try ceremony.read().keys.values.joined() where key.isWrapped {
                let half = "\(ceremony.keys)/\(key.id).\(ceremony.newRoot.id).key.part"
                try Data("{".utf8).write(to: URL(filePath: half))
            }
            try ceremony.rotate()
            #expect(try names(ceremony.keys).allSatisfy { $0.hasSuffix(".key") })
            _ = try ceremony.readWithNewRootOnly()
        }
    }

    @Test func `no file goes before the new one of its key was read back`() throws {
        try withFolder { folder in
            let ceremony = try Ceremony(in: folder)
            let before = try names(ceremony.keys)
            // Said to be wrapped by the new root key, which no file is.
            let keys = try ceremony.read().keys.values.joined().map { key in
                var key = key
                if key.isWrapped { key.wrappers.insert(ceremony.newRoot.id) }
                return key
            }
            #expect(throws: KeyFileError.self) {
                try RootRotation.wrap(keys, by: ceremony.newRoot, in: ceremony.keys)
            }
            #expect(try names(ceremony.keys) == before)
        }
    }

    @Test func `an attempt that failed at one key is ended by the next, with the keys as read before it`()
        throws
    {
        try withFolder { folder in
            let ceremony = try Ceremony(in: folder)
            let keys = try ceremony.read().keys.values.joined().filter(\.isWrapped)
            let last = try #require(keys.last)
            let before = try names(ceremony.keys)
            // No file can be written under this name.
            let place = "\(ceremony.keys)/\(last.id).\(ceremony.newRoot.id).key.part"
            try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
            #expect(throws: KeyFileError.self) {
                try RootRotation.wrap(keys, by: ceremony.newRoot, in: ceremony.keys)
            }
            #expect(try names(ceremony.keys).subtracting(before).count == 1 + keys.count - 1)
            #expect(try names(ceremony.keys).isSuperset(of: before))
            try FileManager.default.removeItem(atPath: place)
            for _ in 0..<2 {
                let wrapped = try RootRotation.wrap(keys, by: ceremony.newRoot, in: ceremony.keys)
                #expect(wrapped.allSatisfy { $0.wrappers == [ceremony.newRoot.id] })
            }
            _ = try ceremony.readWithNewRootOnly()
        }
    }

    @Test func `a file with another secret of the key is not taken for the key's`() throws {
        try withFolder { folder in
            let ceremony = try Ceremony(in: folder)
            let keys = try ceremony.read().keys.values.joined().filter(\.isWrapped)
            var other = try #require(keys.first)
            other.secret = try .random(byteCount: PrivateKeyFile.secretByteCount)
            let elsewhere = "\(folder)/elsewhere"
            try FileManager.default.createDirectory(atPath: elsewhere, withIntermediateDirectories: false)
            _ = try RootRotation.wrap([other], by: ceremony.newRoot, in: elsewhere)
            let name = try #require(try names(elsewhere).first)
            let path = "\(ceremony.keys)/\(name)"
            try FileManager.default.moveItem(atPath: "\(elsewhere)/\(name)", toPath: path)
            let before = try names(ceremony.keys)
            let error = KeyFileError.malformed(path: path, reason: "it has another secret of `\(other.id)`")
            #expect(throws: error) {
                try RootRotation.wrap(keys, by: ceremony.newRoot, in: ceremony.keys)
            }
            #expect(try names(ceremony.keys).isSuperset(of: before))
        }
    }

    @Test func `a wrong root key changes nothing`() throws {
        try withFolder { folder in
            let ceremony = try Ceremony(in: folder)
            try FileManager.default.createDirectory(
                atPath: "\(folder)/other", withIntermediateDirectories: false)
            let other = try Ceremony(in: "\(folder)/other")
            let before = try names(ceremony.keys)
            #expect(throws: KeyFileError.self) {
                try PrivateKeyDirectory(at: ceremony.keys, rootPath: other.oldRoot, acceptsThrowaway: false)
            }
            #expect(try names(ceremony.keys) == before)
        }
    }

    @Test func `an erased key leaves no file`() throws {
        try withFolder { folder in
            let ceremony = try Ceremony(in: folder)
            let path = ceremony.keys
            let link = try ceremony.read().current(.link).id
            try PrivateKeyFile.erase(link, in: path)
            #expect(try names(path).allSatisfy { !$0.hasPrefix(link) })
            // Once more is no error.
            try PrivateKeyFile.erase(link, in: path)
            #expect(try names(path).count == 5)
        }
    }
}
