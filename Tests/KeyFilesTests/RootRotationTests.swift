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

    /// Keys with their root key apart from them, as a ceremony leaves them.
    private func ceremony(in folder: String) throws -> (keys: String, root: String) {
        let keys = "\(folder)/keys"
        let root = "\(folder)/root"
        let paths = try PrivateKeyDirectory.initialize(at: keys, now: Self.now)
        try FileManager.default.moveItem(atPath: paths[0], toPath: root)
        return (keys, root)
    }

    @Test func `every wrapped key is the same under the new root key, and the old one opens none`() throws {
        try withFolder { folder in
            let (path, root) = try ceremony(in: folder)
            let before = try PrivateKeyDirectory(at: path, rootPath: root, acceptsThrowaway: false)
            let asymmetric = try names(path).filter { name in
                ["origin", "trail", "policy"].contains { name.hasPrefix($0) }
            }
            let new = "\(folder)/new-root"
            let rotation = try RootRotation(directory: path, rootPath: root, newRootPath: new)
            #expect(rotation.wrapped.count == 3)
            let done = try rotation.run(at: Self.now.advanced(bySeconds: 60))
            #expect(done.path == new)
            let after = try PrivateKeyDirectory(at: path, rootPath: new, acceptsThrowaway: false)
            for purpose in KeyPurpose.ofGateway where purpose != .root {
                #expect(try after.current(purpose).id == before.current(purpose).id)
                #expect(bytes(try after.current(purpose)) == bytes(try before.current(purpose)))
            }
            #expect(try after.current(.root).id == done.root)
            #expect(try asymmetric.isSubset(of: names(path)))
            #expect(try names(path).count == 6)
            #expect(throws: KeyFileError.self) {
                try PrivateKeyDirectory(at: path, rootPath: root, acceptsThrowaway: false)
            }
        }
    }

    @Test func `at every moment of a rotation one of the two root keys opens everything`() throws {
        // As many files as a run that ended there had written of the new, and removed of the old.
        for (written, removed) in [(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (3, 3)] {
            try withFolder { folder in
                let (path, root) = try ceremony(in: folder)
                let new = "\(folder)/new-root"
                let copy = "\(folder)/copy"
                try FileManager.default.copyItem(atPath: path, toPath: copy)
                _ = try RootRotation(directory: copy, rootPath: root, newRootPath: new).run(at: Self.now)
                let fresh = try names(copy).subtracting(names(path)).sorted()
                let gone = try names(path).subtracting(names(copy)).sorted()
                #expect(fresh.count == 3 && gone.count == 3)
                for name in fresh.prefix(written) {
                    try FileManager.default.copyItem(
                        atPath: "\(copy)/\(name)", toPath: "\(path)/\(name)")
                }
                for name in gone.prefix(removed) {
                    try FileManager.default.removeItem(atPath: "\(path)/\(name)")
                }
                let opener = written == 3 ? new : root
                _ = try PrivateKeyDirectory(at: path, rootPath: opener, acceptsThrowaway: false)
                // Run again, it ends where the first would have.
                _ = try RootRotation(directory: path, rootPath: root, newRootPath: new).run(at: Self.now)
                #expect(try names(path) == names(copy))
                _ = try PrivateKeyDirectory(at: path, rootPath: new, acceptsThrowaway: false)
            }
        }
    }

    @Test func `a wrong root key changes nothing`() throws {
        try withFolder { folder in
            let (path, _) = try ceremony(in: folder)
            let other = try ceremony(
                in: try {
                    let path = "\(folder)/other"
                    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
                    return path
                }())
            let before = try names(path)
            #expect(throws: KeyFileError.self) {
                try RootRotation(directory: path, rootPath: other.root, newRootPath: "\(folder)/new")
            }
            #expect(try names(path) == before)
            #expect(!FileManager.default.fileExists(atPath: "\(folder)/new"))
        }
    }

    @Test func `an erased key leaves no file`() throws {
        try withFolder { folder in
            let (path, root) = try ceremony(in: folder)
            let keys = try PrivateKeyDirectory(at: path, rootPath: root, acceptsThrowaway: false)
            let link = try keys.current(.link).id
            try PrivateKeyFile.erase(link, in: path)
            #expect(try names(path).allSatisfy { !$0.hasPrefix(link) })
            // Once more is no error.
            try PrivateKeyFile.erase(link, in: path)
            #expect(try names(path).count == 5)
        }
    }
}
