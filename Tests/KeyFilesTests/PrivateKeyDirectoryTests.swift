import Foundation
import GateTestKit
import GateVocabulary
import Glibc
import KeyFiles
import KeyLifecycle
import OpenSSLCrypto
import Testing

@Suite struct PrivateKeyDirectoryTests {
    static let now = Instant(milliseconds: 1_795_000_000_000)

    /// A folder of its own for each test, gone afterwards.
    func withFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
        let path = NSTemporaryDirectory() + "sendgate-keys-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try body(path)
    }

    @Test func `a ceremony makes one key of every purpose and they read back`() throws {
        try withFolder { path in
            try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let keys = try PrivateKeyDirectory(at: path, acceptsThrowaway: false)
            #expect(Set(keys.keys.keys) == Set(KeyPurpose.ofGateway))
            #expect(keys.keys[.policy] == nil && keys.keys[.authority] == nil)
            for purpose in KeyPurpose.ofGateway {
                let key = try keys.current(purpose)
                #expect(key.purpose == purpose)
                #expect(key.createdAt == Self.now)
                #expect(key.secret.count == 32)
                #expect((try key.publicKey() != nil) == purpose.isAsymmetric)
            }
        }
    }

    @Test func `a second ceremony in the same folder is refused and changes nothing`() throws {
        try withFolder { path in
            #expect(throws: KeyFileError.self) { try PrivateKeyDirectory.requireAccess(at: path) }
            try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let before = try FileManager.default.contentsOfDirectory(atPath: path).sorted()
            try PrivateKeyDirectory.requireAccess(at: path)
            #expect(throws: KeyFileError.exists(path: "\(path)/\(before[0])")) {
                try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: path).sorted() == before)
        }
    }

    @Test func `key files are readable by their owner only and a wider mode is refused`() throws {
        try withFolder { path in
            let files = try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            for file in files {
                let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
                #expect(mode == 0o400, "\(file)")
            }
            for mode in [0o440, 0o404, 0o600, 0o420, 0o402, 0o777] {
                try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: files[1])
                let error = KeyFileError.tooOpen(path: files[1], mode: UInt32(mode))
                #expect(throws: error) { try PrivateKeyDirectory(at: path, acceptsThrowaway: false) }
                #expect(error.hint.contains("chmod 0400 \(files[1])"))
            }
            try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: files[1])
            #expect(throws: Never.self) { try PrivateKeyDirectory(at: path, acceptsThrowaway: false) }
        }
    }

    @Test(arguments: [0o777, 0o1777, 0o770, 0o702, 0o755, 0o750, 0o710, 0o701])
    func `a directory that others may enter, list or write in is refused`(_ mode: Int) throws {
        try withFolder { path in
            try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            let error = KeyFileError.directoryTooOpen(path: path, mode: UInt32(mode))
            #expect(throws: error) { try PrivateKeyDirectory(at: path, acceptsThrowaway: false) }
            #expect(error.hint.contains("chmod 0700 \(path)"))
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
            #expect(throws: Never.self) { try PrivateKeyDirectory(at: path, acceptsThrowaway: false) }
        }
    }

    @Test func `no keys are made in a directory that others may enter`() throws {
        try withFolder { path in
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
            #expect(throws: KeyFileError.directoryTooOpen(path: path, mode: 0o755)) {
                try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty)
        }
    }

    @Test func `a directory is asked by a file whether it can be written, and none is left`() throws {
        try withFolder { path in
            let missing = #expect(throws: KeyFileError.self) {
                try PrivateKeyDirectory.requireWritable(at: path)
            }
            #expect(
                missing?.message.contains("No such file or directory") == true,
                "\(String(describing: missing))")
            try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let before = try FileManager.default.contentsOfDirectory(atPath: path).sorted()
            try PrivateKeyDirectory.requireWritable(at: path)
            // What a kill left of an earlier call is in nothing's way, and is no key to a start.
            #expect(
                FileManager.default.createFile(atPath: "\(path)/writable.probe", contents: Data("0".utf8)))
            #expect(throws: Never.self) { try PrivateKeyDirectory(at: path, acceptsThrowaway: false) }
            try PrivateKeyDirectory.requireWritable(at: path)
            #expect(try FileManager.default.contentsOfDirectory(atPath: path).sorted() == before)
            // Its mode lets root and owner write; the file system takes no file all the same.
            #expect(throws: KeyFileError.self) { try PrivateKeyDirectory.requireWritable(at: "/proc/self") }
        }
    }

    @Test func `a key is there while a start would read it, and not once its file is gone or another`() throws
    {
        try withFolder { path in
            try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let keys = try PrivateKeyDirectory(at: path, acceptsThrowaway: false)
            let root = try keys.current(.root)
            let moved = "\(path)-root"
            defer { try? FileManager.default.removeItem(atPath: moved) }
            func isThere(_ key: PrivateKeyFile, rootPath: String? = nil) -> Bool {
                PrivateKeyDirectory.holds(
                    key, in: path, roots: [root.id: root], rootPath: rootPath, credentials: nil)
            }
            for key in keys.keys.values.joined() {
                #expect(isThere(key), "\(key.id)")
                var other = key
                other.secret = try SecretBytes.random(byteCount: PrivateKeyFile.secretByteCount)
                #expect(!isThere(other), "\(key.id)")
                let file = "\(path)/\(key.id).key"
                chmod(file, 0o644)
                #expect(!isThere(key), "\(key.id)")
                chmod(file, 0o400)
                try FileManager.default.moveItem(atPath: file, toPath: moved)
                #expect(!isThere(key), "\(key.id)")
                // A root key may be kept elsewhere, under any name.
                #expect(isThere(key, rootPath: moved) == (key.purpose == .root), "\(key.id)")
                try FileManager.default.moveItem(atPath: moved, toPath: file)
            }
        }
    }

    @Test func `a directory of another user's is refused, and root's is not`() throws {
        try #require(getuid() == 0, "gives files to other users, so run it as root")
        try withFolder { path in
            try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            #expect(throws: Never.self) { try PrivateKeyDirectory(at: path, acceptsThrowaway: false) }
            chown(path, 4711, 0)
            let error = KeyFileError.foreignDirectory(path: path, owner: 4711)
            #expect(throws: error) { try PrivateKeyDirectory(at: path, acceptsThrowaway: false) }
            #expect(error.hint.contains("chown 0 \(path)"))
        }
    }

    /// systemd: root's, 0550, with an access control list for the service's user.
    @Test func `a folder of credentials may hold the keys, with the modes systemd gives it`() throws {
        try #require(getuid() == 0, "gives files to other users, so run it as root")
        try withFolder { path in
            for file in try PrivateKeyDirectory.initialize(at: path, now: Self.now) { chmod(file, 0o440) }
            chmod(path, 0o550)
            func read(credentials: String?) throws -> PrivateKeyDirectory {
                try PrivateKeyDirectory(at: path, credentials: credentials, acceptsThrowaway: false)
            }
            #expect(throws: Never.self) { try read(credentials: path) }
            #expect(throws: KeyFileError.directoryTooOpen(path: path, mode: 0o550)) {
                try read(credentials: path + "-other")
            }
            chmod(path, 0o555)
            #expect(throws: KeyFileError.directoryTooOpen(path: path, mode: 0o555)) {
                try read(credentials: path)
            }
        }
    }

    /// systemd: root's, 0440, with an access control list for the service's user.
    @Test func `a credential as systemd lays it down is accepted, and nowhere else`() throws {
        try #require(getuid() == 0, "gives files to other users, so run it as root")
        try withFolder { path in
            let files = try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let root = try #require(files.first { $0.contains("/root-") })
            let credentials = path + "-credentials"
            defer { try? FileManager.default.removeItem(atPath: credentials) }
            try FileManager.default.createDirectory(
                atPath: credentials, withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o550])
            let laid = credentials + "/root"
            try FileManager.default.moveItem(atPath: root, toPath: laid)
            func read(_ mode: mode_t, owner: uid_t = 0, credentials: String?) throws -> PrivateKeyDirectory {
                chmod(laid, mode)
                chown(laid, owner, 0)
                return try PrivateKeyDirectory(
                    at: path, rootPath: laid, credentials: credentials, acceptsThrowaway: false)
            }
            #expect(try read(0o440, credentials: credentials).keys[.root]?.count == 1)
            #expect(try read(0o440, credentials: credentials + "/").keys[.root]?.count == 1)
            #expect(try read(0o400, credentials: nil).keys[.root]?.count == 1)
            let tooOpen = KeyFileError.tooOpen(path: laid, mode: 0o440)
            for folder in [nil, path, credentials + "-other", ""] as [String?] {
                #expect(throws: tooOpen) { try read(0o440, credentials: folder) }
            }
            #expect(throws: tooOpen) { try read(0o440, owner: 4711, credentials: credentials) }
            for mode in [0o444, 0o640, 0o460] as [mode_t] {
                #expect(throws: KeyFileError.tooOpen(path: laid, mode: UInt32(mode))) {
                    try read(mode, credentials: credentials)
                }
            }
        }
    }

    /// The list that systemd gives a credential: only root and one user (acl(5), as `system.posix_acl_access` has it).
    static func setList(of path: String, admitting user: UInt32, _ permissions: UInt16) -> Bool {
        let entries: [(tag: UInt16, permissions: UInt16, id: UInt32)] = [
            (0x01, permissions, .max), (0x02, permissions, user), (0x04, 0, .max), (0x10, permissions, .max),
            (0x20, 0, .max),
        ]
        var bytes: [UInt8] = [2, 0, 0, 0]
        for entry in entries {
            for value in [entry.tag, entry.permissions] { bytes += [UInt8(value & 0xFF), UInt8(value >> 8)] }
            bytes += withUnsafeBytes(of: entry.id.littleEndian) { Array($0) }
        }
        // <sys/xattr.h> is not imported with the C library.
        typealias SetAttribute =
            @convention(c) (
                UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeRawPointer, Int, Int32
            ) -> Int32
        guard let symbol = dlsym(nil, "setxattr") else { return false }
        let set = unsafeBitCast(symbol, to: SetAttribute.self)
        return set(path, "system.posix_acl_access", bytes, bytes.count, 0) == 0
    }

    /// The process becomes another user, so it is one of its own.
    @Test func `the user a credential is for reads it through its list, and no other user does`() async throws
    {
        try #require(getuid() == 0, "becomes other users, so run it as root")
        await #expect(processExitsWith: .success) {
            let user: UInt32 = 4242
            try PrivateKeyDirectoryTests().withFolder { path in
                let files = try PrivateKeyDirectory.initialize(at: path, now: PrivateKeyDirectoryTests.now)
                let root = try #require(files.first { $0.contains("/root-") })
                let credentials = path + "-credentials"
                defer { try? FileManager.default.removeItem(atPath: credentials) }
                mkdir(credentials, 0o500)
                let laid = credentials + "/root"
                try FileManager.default.moveItem(atPath: root, toPath: laid)
                try #require(PrivateKeyDirectoryTests.setList(of: laid, admitting: user, 4))
                try #require(PrivateKeyDirectoryTests.setList(of: credentials, admitting: user, 5))
                // What the mask of the lists shows as the group's.
                var status = stat()
                #expect(stat(laid, &status) == 0 && status.st_mode & 0o777 == 0o440)
                #expect(stat(credentials, &status) == 0 && status.st_mode & 0o777 == 0o550)
                for file in files.dropFirst() + [path] { chown(file, user, user) }
                func read(credentials: String?) throws -> PrivateKeyDirectory {
                    try PrivateKeyDirectory(
                        at: path, rootPath: laid, credentials: credentials, acceptsThrowaway: false)
                }
                func become(_ other: UInt32) -> Bool {
                    seteuid(0) == 0 && setegid(other) == 0 && setgroups(0, nil) == 0 && seteuid(other) == 0
                }
                defer { _ = become(0) }
                try #require(become(user))
                #expect(try read(credentials: credentials).keys[.root]?.count == 1)
                #expect(throws: KeyFileError.tooOpen(path: laid, mode: 0o440)) {
                    try read(credentials: nil)
                }
                try #require(become(0))
                for file in files.dropFirst() + [path] { chown(file, 4343, 4343) }
                try #require(become(4343))
                #expect {
                    try read(credentials: credentials)
                } throws: { error in
                    guard case KeyFileError.cannotRead(let named, _) = error else { return false }
                    return named == laid
                }
            }
        }
    }

    @Test func `what a kill left of a key file is destroyed, and no key with it`() throws {
        try withFolder { path in
            let files = try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let part = "\(path)/origin-0123456789abcdef.key.part"
            // Another name for the same bytes, as a backup that was made by links has it.
            let link = "\(path)-link"
            defer { try? FileManager.default.removeItem(atPath: link) }
            try "a secret".write(toFile: part, atomically: false, encoding: .utf8)
            chmod(part, 0o400)
            try FileManager.default.linkItem(atPath: part, toPath: link)
            try PrivateKeyDirectory.eraseUnfinished(in: path)
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: path).sorted()
                    == files.map { String($0.dropFirst(path.count + 1)) }.sorted())
            #expect(try Data(contentsOf: URL(filePath: link)).allSatisfy { $0 == 0 })
            #expect(throws: Never.self) { try PrivateKeyDirectory(at: path, acceptsThrowaway: false) }
        }
    }

    /// A ceremony that is killed before the link leaves a `.part` with the key's seed, and no key file.
    @Test(arguments: [KeyPurpose.policy, .authority, .root])
    func `a ceremony destroys the secret that a killed one left, and a finished key keeps one name`(
        _ purpose: KeyPurpose
    ) throws {
        try withFolder { path in
            func ceremony() throws {
                if purpose == .root {
                    try PrivateKeyDirectory.initialize(at: path, now: Self.now)
                } else {
                    let key = try PrivateKeyFile.generate(purpose, at: Self.now)
                    _ = try PrivateKeyDirectory.initialize(at: path, with: key)
                }
            }
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            let part = "\(path)/\(purpose.rawValue)-0123456789abcdef.key.part"
            // A hard link still shows the file's bytes after its name is gone.
            let link = "\(path)-link"
            defer { try? FileManager.default.removeItem(atPath: link) }
            try "a seed".write(toFile: part, atomically: false, encoding: .utf8)
            chmod(part, 0o400)
            try FileManager.default.linkItem(atPath: part, toPath: link)
            try ceremony()
            #expect(try Data(contentsOf: URL(filePath: link)).allSatisfy { $0 == 0 })
            let names = try FileManager.default.contentsOfDirectory(atPath: path).sorted()
            #expect(names.allSatisfy { $0.hasSuffix(".key") }, "\(names)")

            // Killed after the link: the second ceremony is refused, and takes only the second name away. An unfinished file
            // of a key that is not there may be one that a running gateway is writing.
            let file = "\(path)/\(try #require(names.first))"
            let bytes = try Data(contentsOf: URL(filePath: file))
            try FileManager.default.linkItem(atPath: file, toPath: file + ".part")
            try "being written".write(toFile: part, atomically: false, encoding: .utf8)
            #expect(throws: KeyFileError.exists(path: file)) { try ceremony() }
            #expect(try Data(contentsOf: URL(filePath: file)) == bytes)
            #expect(!FileManager.default.fileExists(atPath: file + ".part"))
            #expect(try String(contentsOfFile: part, encoding: .utf8) == "being written")
        }
    }

    @Test func `an unfinished file in the way of a new one is overwritten, and not only unlinked`() throws {
        try withFolder { path in
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            var key = try PrivateKeyFile.generate(.origin, at: Self.now)
            let part = "\(path)/\(key.id).key.part"
            let link = "\(path)-link"
            defer { try? FileManager.default.removeItem(atPath: link) }
            try "of a process that was killed".write(toFile: part, atomically: false, encoding: .utf8)
            try FileManager.default.linkItem(atPath: part, toPath: link)
            _ = try key.create(in: path, wrappedBy: nil)
            #expect(try Data(contentsOf: URL(filePath: link)).allSatisfy { $0 == 0 })
            #expect(try FileManager.default.contentsOfDirectory(atPath: path) == ["\(key.id).key"])
            #expect(throws: KeyFileError.self) { try key.create(in: path, wrappedBy: nil) }
            #expect(try FileManager.default.contentsOfDirectory(atPath: path) == ["\(key.id).key"])
        }
    }

    /// A kill between the second name's coming and the first one's going leaves both, of the same bytes.
    @Test func `a key file that also has the name it was written under loses that name alone`() throws {
        try withFolder { path in
            let files = try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let before = try files.map { try Data(contentsOf: URL(filePath: $0)) }
            for file in files { try FileManager.default.linkItem(atPath: file, toPath: file + ".part") }
            try PrivateKeyDirectory.eraseUnfinished(in: path)
            #expect(try files.map { try Data(contentsOf: URL(filePath: $0)) } == before)
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: path).sorted()
                    == files.map { String($0.dropFirst(path.count + 1)) }.sorted())
        }
    }

    @Test(arguments: [0o400, 0o600] as [mode_t])
    func `a key file whose destruction was interrupted is not read, and is destroyed`(mode: mode_t) throws {
        try withFolder { path in
            let files = try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            var key = try PrivateKeyFile.generate(.origin, at: Self.now)
            let doomed = try key.create(in: path, wrappedBy: nil) + ".doomed"
            let link = "\(path)-link"
            defer { try? FileManager.default.removeItem(atPath: link) }
            try FileManager.default.moveItem(atPath: String(doomed.dropLast(7)), toPath: doomed)
            chmod(doomed, mode)
            try FileManager.default.linkItem(atPath: doomed, toPath: link)
            #expect(try PrivateKeyDirectory(at: path, acceptsThrowaway: false).keys[.origin]?.count == 1)
            try PrivateKeyDirectory.eraseUnfinished(in: path)
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: path).sorted()
                    == files.map { String($0.dropFirst(path.count + 1)) }.sorted())
            #expect(try Data(contentsOf: URL(filePath: link)).allSatisfy { $0 == 0 })
        }
    }

    @Test func `a key file that is there is not written over`() throws {
        try withFolder { path in
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            var key = try PrivateKeyFile.generate(.origin, at: Self.now)
            let file = try key.create(in: path, wrappedBy: nil)
            let bytes = try Data(contentsOf: URL(filePath: file))
            var other = try PrivateKeyFile.generate(.origin, at: Self.now)
            other.id = key.id
            #expect(throws: KeyFileError.exists(path: file)) { try other.create(in: path, wrappedBy: nil) }
            #expect(try !bytes.isEmpty && Data(contentsOf: URL(filePath: file)) == bytes)
        }
    }

    @Test func `symmetric keys are wrapped, and a foreign root does not open them`() throws {
        try withFolder { path in
            let files = try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            for purpose in ["data", "index", "link"] {
                let file = try #require(files.first { $0.contains("/\(purpose)-") })
                let text = try String(contentsOfFile: file, encoding: .utf8)
                #expect(text.contains("\"wrapped\"") && !text.contains("\"secret\""), "\(purpose)")
            }
            let data = try #require(files.first { $0.contains("/data-") })
            let root = try #require(files.first { $0.contains("/root-") })
            let rootID = try PrivateKeyFile.read(root, roots: [:]).id
            let other = PrivateKeyFile(
                id: rootID, purpose: .root, createdAt: Self.now, secret: try .random(byteCount: 32))
            #expect(throws: KeyFileError.wrongRoot(path: data)) {
                try PrivateKeyFile.read(data, roots: [rootID: other])
            }
            #expect(throws: KeyFileError.wrongRoot(path: data)) { try PrivateKeyFile.read(data, roots: [:]) }
        }
    }

    @Test(arguments: [false, true])
    func `a wrapped key renamed to another id, or made another age, does not open`(isOlder: Bool) throws {
        try withFolder { path in
            let files = try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let root = try PrivateKeyFile.read(
                try #require(files.first { $0.contains("/root-") }), roots: [:])
            let data = try #require(files.first { $0.contains("/data-") })
            let text = try String(contentsOfFile: data, encoding: .utf8)
            let id = try PrivateKeyFile.read(data, roots: [root.id: root]).id
            let forgery =
                isOlder
                ? text.replacing("\(Self.now.milliseconds)", with: "\(Self.now.milliseconds - 1)")
                : text.replacing(id, with: "data-0000000000000000")
            #expect(forgery != text)
            let forged = "\(path)/forged.key"
            try forgery.write(toFile: forged, atomically: false, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: forged)
            #expect(throws: KeyFileError.wrongRoot(path: forged)) {
                try PrivateKeyFile.read(forged, roots: [root.id: root])
            }
        }
    }

    /// What an edited file says of an asymmetric key its id would not tell, and of a root key nothing else would.
    @Test(arguments: [
        (KeyPurpose.root, KeyPurpose?.none), (.origin, nil), (.trail, nil), (.trail, .origin),
        (.origin, .policy),
        (.policy, .authority), (.origin, .root),
    ])
    func `a bare secret is not taken for a key of another purpose or another age`(
        purpose: KeyPurpose, claimed: KeyPurpose?
    ) throws {
        try withFolder { path in
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            var key = try PrivateKeyFile.generate(purpose, at: Self.now)
            let text = try String(contentsOfFile: key.create(in: path, wrappedBy: nil), encoding: .utf8)
            let forgery =
                claimed.map {
                    text.replacing("\(purpose.rawValue)-", with: "\($0.rawValue)-")
                        .replacing(#""\#(purpose.rawValue)""#, with: #""\#($0.rawValue)""#)
                        .replacing(#""\#(purpose.suite)""#, with: #""\#($0.suite)""#)
                } ?? text.replacing("\(Self.now.milliseconds)", with: "\(Self.now.milliseconds + 1)")
            try #require(forgery != text)
            let forged = "\(path)/forged.key"
            try forgery.write(toFile: forged, atomically: false, encoding: .utf8)
            chmod(forged, 0o400)
            let error = #expect(throws: KeyFileError.self) { try PrivateKeyFile.read(forged, roots: [:]) }
            #expect(
                error?.message.contains("`\(forged)`") == true
                    && error?.message.contains("not written for the \((claimed ?? purpose).rawValue) key")
                        == true,
                "\(error as Any)")
        }
    }

    /// The wrapping proves that a root key of this gateway was there when the file was made.
    @Test(arguments: [KeyPurpose.data, .index, .link])
    func `a bare secret in the place of a wrapped one is refused`(purpose: KeyPurpose) throws {
        try withFolder { path in
            let files = try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let file = try #require(files.first { $0.contains("/\(purpose.rawValue)-") })
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let digits = String(repeating: "7", count: 64)
            let id = try #require(file.split(separator: "/").last?.dropLast(".key".count))
            let bare =
                #"{"created":1795000000000,"id":"\#(id)","purpose":"\#(purpose.rawValue)","secret":"\#(digits)","#
                + #""suite":"\#(purpose.suite)","v":1}"# + "\n"
            for damaged in [
                bare, text.replacing(#""suite""#, with: #""secret":"\#(digits)","suite""#),
                text.replacing(#"{"created""#, with: #"{"a":1,"created""#),
            ] {
                try #require(damaged != text)
                chmod(file, 0o600)
                try damaged.write(toFile: file, atomically: false, encoding: .utf8)
                chmod(file, 0o400)
                #expect {
                    try PrivateKeyDirectory(at: path, acceptsThrowaway: false)
                } throws: { error in
                    guard case KeyFileError.malformed(let named, _) = error else { return false }
                    return named == file
                }
            }
        }
    }

    @Test(arguments: [KeyPurpose.origin, .data, .root])
    func `a key file under another name is refused, since its key's destruction would leave it there`(
        purpose: KeyPurpose
    ) throws {
        try withFolder { path in
            let files = try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let file = try #require(files.first { $0.contains("/\(purpose.rawValue)-") })
            let renamed = "\(path)/\(purpose.rawValue)-of-november.key"
            try FileManager.default.moveItem(atPath: file, toPath: renamed)
            let id = String(try #require(file.split(separator: "/").last?.dropLast(".key".count)))
            let error = KeyFileError.misnamed(path: renamed, id: id)
            #expect(throws: error) { try PrivateKeyDirectory(at: path, acceptsThrowaway: false) }
            #expect(error.hint.contains("`\(id).key`"))
        }
    }

    @Test func `an Ed25519 key under the id of another is refused`() throws {
        try withFolder { path in
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            let key = try PrivateKeyFile.generate(.trail, at: Self.now)
            var other = try PrivateKeyFile.generate(.trail, at: Self.now)
            other.id = key.id
            let file = try other.create(in: path, wrappedBy: nil)
            #expect(
                throws: KeyFileError.malformed(
                    path: file, reason: "the secret is not that of the key `\(key.id)`")
            ) { try PrivateKeyFile.read(file, roots: [:]) }
        }
    }

    /// Two root keys wrap a key while they are exchanged, and it is the same key in both files.
    @Test func `two files of one key that have different secrets are refused`() throws {
        try withFolder { path in
            try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let key = try PrivateKeyDirectory(at: path, acceptsThrowaway: false).current(.data)
            var root = try PrivateKeyFile.generate(.root, at: Self.now)
            try root.create(in: path, wrappedBy: nil)
            func second(_ secret: SecretBytes) throws -> String {
                var other = PrivateKeyFile(
                    id: key.id, purpose: .data, createdAt: Self.now, secret: secret)
                let elsewhere = "\(path)-elsewhere"
                defer { rmdir(elsewhere) }
                try FileManager.default.createDirectory(
                    atPath: elsewhere, withIntermediateDirectories: false)
                let file = "\(path)/\(key.id).\(root.id).key"
                unlink(file)
                try FileManager.default.moveItem(
                    atPath: other.create(in: elsewhere, wrappedBy: root), toPath: file)
                return file
            }
            _ = try second(key.secret)
            #expect(throws: Never.self) { try PrivateKeyDirectory(at: path, acceptsThrowaway: false) }
            let file = try second(.random(byteCount: 32))
            #expect {
                try PrivateKeyDirectory(at: path, acceptsThrowaway: false)
            } throws: { error in
                guard case KeyFileError.malformed(let named, _) = error else { return false }
                // Whichever of the two is read second.
                return named == file || named == "\(path)/\(key.id).key"
            }
        }
    }

    @Test func `a root key that is kept elsewhere may have any name`() throws {
        try withFolder { path in
            let files = try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let elsewhere = "\(path)-credential"
            defer { unlink(elsewhere) }
            try FileManager.default.moveItem(atPath: files[0], toPath: elsewhere)
            let keys = try PrivateKeyDirectory(at: path, rootPath: elsewhere, acceptsThrowaway: false)
            #expect(keys.keys[.root]?.count == 1)
        }
    }

    @Test(arguments: ["dev-", "test-"])
    func `throwaway keys serve a first hour and never production`(prefix: String) throws {
        try withFolder { path in
            try PrivateKeyDirectory.initialize(at: path, prefix: prefix, now: Self.now)
            _ = try PrivateKeyDirectory(at: path, acceptsThrowaway: true).current(.origin)
            #expect {
                try PrivateKeyDirectory(at: path, acceptsThrowaway: false)
            } throws: { error in
                guard case KeyFileError.throwawayKey = error else { return false }
                return true
            }
        }
    }

    @Test(arguments: [KeyPurpose.policy, .authority], [true, false])
    func `a key that is kept offline is refused beside a gateway's, in development too`(
        purpose: KeyPurpose, isDevelopment: Bool
    ) throws {
        try withFolder { path in
            try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            var key = try PrivateKeyFile.generate(purpose, at: Self.now)
            _ = try key.create(in: path, wrappedBy: nil)
            let error = KeyFileError.offlineKeyPresent(id: key.id, purpose: purpose, directory: path)
            #expect(throws: error) { try PrivateKeyDirectory(at: path, acceptsThrowaway: isDevelopment) }
            // A copy under another name is as good to a thief.
            try FileManager.default.moveItem(atPath: "\(path)/\(key.id).key", toPath: "\(path)/old.bak")
            #expect(throws: error) { try PrivateKeyDirectory(at: path, acceptsThrowaway: isDevelopment) }
            try "a note".write(toFile: "\(path)/old.bak", atomically: true, encoding: .utf8)
            _ = try PrivateKeyDirectory(at: path, acceptsThrowaway: isDevelopment)
        }
    }

    /// Without its root key no wrapped key opens, and none is called one of another root key.
    @Test(arguments: PrivateKeyDirectory.required)
    func `a missing purpose is named with what it is for, and is put back rather than made anew`(
        purpose: KeyPurpose
    ) throws {
        try withFolder { path in
            let files = try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let file = try #require(files.first { $0.contains("/\(purpose.rawValue)-") })
            try FileManager.default.removeItem(atPath: file)
            let error = #expect(throws: KeyFileError.self) {
                try PrivateKeyDirectory(at: path, acceptsThrowaway: false)
            }
            #expect(error == .missing(purpose: purpose, directory: path))
            let (message, hint) = (error?.message ?? "", error?.hint ?? "")
            #expect(message == "there is no \(purpose.rawValue) key in `\(path)`; \(purpose.use)")
            #expect(hint.hasPrefix("where a gateway has run with it, put its file back from the backup"))
            #expect(hint.contains("only for a new gateway, run `sendgate keys init`"))
            #expect(hint.contains("`root_key`") == (purpose == .root))
        }
    }

    @Test func `a root key that is not that of the files is called so, and not missing`() throws {
        try withFolder { path in
            let files = try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            try FileManager.default.removeItem(atPath: try #require(files.first { $0.contains("/root-") }))
            var other = try PrivateKeyFile.generate(.root, at: Self.now)
            _ = try other.create(in: path, wrappedBy: nil)
            let error = #expect(throws: KeyFileError.self) {
                try PrivateKeyDirectory(at: path, acceptsThrowaway: false)
            }
            guard case .wrongRoot = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test func `files that are there are to be moved only where they were never used`() {
        let hint = KeyFileError.exists(path: "keys/root-1.key").hint
        #expect(hint.hasPrefix("it may be in use, so keep it; to rotate, run `sendgate keys rotate`; only"))
        #expect(hint.contains("in a directory that neither a gateway nor a signature has used"))
        #expect(!hint.contains("remove"))
    }

    @Test func `a link in place of a key file is refused`() throws {
        try withFolder { path in
            let files = try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let link = "\(path)/trail-link.key"
            try FileManager.default.createSymbolicLink(
                atPath: link, withDestinationPath: try #require(files.first { $0.contains("/trail-") }))
            #expect(throws: KeyFileError.notAPlainFile(path: link)) {
                try PrivateKeyDirectory(at: path, acceptsThrowaway: false)
            }
        }
    }

    /// To open it would wait for a writer that never comes.
    @Test func `a pipe in place of a key file is refused, also of one that was being written`() throws {
        try withFolder { path in
            try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let pipe = "\(path)/trail-pipe.key"
            try #require(mkfifo(pipe, 0o400) == 0)
            #expect(throws: KeyFileError.notAPlainFile(path: pipe)) {
                try PrivateKeyDirectory(at: path, acceptsThrowaway: false)
            }
            for unfinished in ["\(pipe).part", "\(pipe).doomed"] {
                try #require(rename(pipe, unfinished) == 0)
                #expect(throws: KeyFileError.notAPlainFile(path: unfinished)) {
                    try PrivateKeyDirectory.eraseUnfinished(in: path)
                }
                try #require(rename(unfinished, pipe) == 0)
            }
        }
    }

    @Test(arguments: ["", "{}", "{\"v\":1}", "not json", "{\"v\":2,\"id\":\"x\"}"])
    func `a damaged key file is refused with its path`(content: String) throws {
        try withFolder { path in
            try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let damaged = "\(path)/origin-damaged.key"
            try content.write(toFile: damaged, atomically: false, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: damaged)
            #expect {
                try PrivateKeyDirectory(at: path, acceptsThrowaway: false)
            } throws: { error in
                guard case KeyFileError.malformed(let named, _) = error else { return false }
                return named == damaged
            }
        }
    }

    /// The secret is taken out of the file's bytes before the rest is read.
    @Test func `a file's secret is the member of that name, once and in lower case`() throws {
        try withFolder { path in
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            var key = try PrivateKeyFile.generate(.origin, at: Self.now)
            let file = try key.create(in: path, wrappedBy: nil)
            let text = try String(contentsOfFile: file, encoding: .utf8)
            let digits = key.secret.withUnsafeBytes { Hexadecimal.encode(Array($0)) }
            // As it is always written.
            let context =
                "sendgate/key-tag/v1\0sendgate/key-file/v1\0origin\0\(key.id)\0\(Self.now.milliseconds)"
            let tag = HMACKey(key.secret).authenticate(Array(context.utf8))
            let line =
                #"{"created":1795000000000,"id":"\#(key.id)","purpose":"origin","secret":"\#(digits)","#
                + #""suite":"Ed25519","tag":"\#(Hexadecimal.encode(tag))","v":1}"# + "\n"
            #expect(text == line)
            let read = try PrivateKeyFile.read(file, roots: [:])
            #expect(read.secret.withUnsafeBytes { Array($0) } == key.secret.withUnsafeBytes { Array($0) })

            let other = String(repeating: "7", count: 64)
            for (number, damaged) in [
                text.replacing(digits, with: "A" + digits.dropFirst()), text.replacing(digits, with: ""),
                text.replacing(digits, with: digits.dropLast()),
                text.replacing(digits, with: digits.dropLast(2)), text.replacing(digits, with: digits + "00"),
                text.replacing(#""secret""#, with: #""secrets""#),
                // Another one before it, in an object that nothing reads.
                text.replacing(#"{"created""#, with: #"{"a":{"secret":"\#(other)"},"created""#),
                text.replacing(#""secret":"\#(digits)""#, with: #""secret":{"secret":"\#(digits)"}"#),
                text.replacing(#""suite""#, with: #""secret":"\#(other)","suite""#),
            ].enumerated() {
                try #require(damaged != text)
                let forged = "\(path)/forged-\(number)"
                try damaged.write(toFile: forged, atomically: false, encoding: .utf8)
                chmod(forged, 0o400)
                #expect(throws: KeyFileError.self, "\(number)") {
                    try PrivateKeyFile.read(forged, roots: [:])
                }
            }
        }
    }

    @Test func `the keyring shows public parts and no secret`() throws {
        try withFolder { path in
            try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            let keys = try PrivateKeyDirectory(at: path, acceptsThrowaway: false)
            let text = try keys.keyringText()
            for purpose in KeyPurpose.ofGateway {
                let key = try keys.current(purpose)
                #expect(text.contains(key.id))
                let secret = key.secret.withUnsafeBytes { Hexadecimal.encode(Array($0)) }
                #expect(!text.contains(secret))
            }
            let origin = try #require(try keys.current(.origin).publicKey())
            #expect(text.contains(Hexadecimal.encode(origin.rawBytes)))
        }
    }

    @Test func `a damaged key file is refused with its path, never a trap`() throws {
        try withFolder { path in
            let files = try PrivateKeyDirectory.initialize(at: path, now: Self.now)
            #expect(files.count >= 3)
            for (number, file) in files.enumerated() where number < 3 {
                let original = Array(try Data(contentsOf: URL(fileURLWithPath: file)))
                let damages = Array(
                    DamagedBytes(of: original, seed: 0x5EED_0014 + UInt64(number), randomCount: 100))
                for bytes in stride(from: 0, to: damages.count, by: 5).map({ damages[$0] }) {
                    try FileManager.default.removeItem(atPath: file)
                    try Data(bytes).write(to: URL(fileURLWithPath: file))
                    try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: file)
                    do {
                        _ = try PrivateKeyDirectory(at: path, acceptsThrowaway: true)
                    } catch let error as KeyFileError {
                        #expect(error.message.contains(path))
                    }
                }
                try FileManager.default.removeItem(atPath: file)
                try Data(original).write(to: URL(fileURLWithPath: file))
                try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: file)
            }
        }
    }
}
