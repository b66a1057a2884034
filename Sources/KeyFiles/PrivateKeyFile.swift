import CanonicalJSON
package import GateVocabulary
import Glibc
package import OpenSSLCrypto

/// One private key on disk: canonical JSON in a file of mode 0400 that is created exclusively.
///
///     {"created":1795000000000,"id":"origin-9f86d081884c7d65","purpose":"origin","secret":"…64 hex…",
///      "suite":"Ed25519","tag":"…64 hex…","v":1}
///
/// `tag` is an HMAC-SHA256 under the secret itself of id, purpose and time: it finds a file whose members were mixed up or put
/// together by hand. A user who may write the file and knows the secret can make one, so it proves nothing of who wrote it.
///
/// `data`, `index` and `link` are wrapped by the root key (AES-256-GCM) and have `wrapped` and `root` in place
/// of `secret` and `tag`; id, purpose and time are authenticated with them, so that no file can take another's place. Of these purposes a file with a
/// bare secret is refused, and so is any file with other members.
package struct PrivateKeyFile: Sendable {
    package var id: String
    package var purpose: KeyPurpose
    package var createdAt: Instant
    package var secret: SecretBytes
    /// Ids of the root keys that wrap its files: two between the two halves of a ``RootRotation``; none for a key that has not
    /// been read from a file or written to one.
    package var wrappers: Set<String> = []

    package static let byteCountMax = 4096
    /// Every secret here is 32 bytes: an Ed25519 seed, an AES-256 key, an HMAC-SHA256 key.
    package static let secretByteCount = 32

    package init(id: String, purpose: KeyPurpose, createdAt: Instant, secret: SecretBytes) {
        self.id = id
        self.purpose = purpose
        self.createdAt = createdAt
        self.secret = secret
    }

    /// Makes a key whose id says what it is: `[prefix-]purpose-16 hex digits`.
    package static func generate(
        _ purpose: KeyPurpose, prefix: String = "", at now: Instant
    ) throws -> PrivateKeyFile {
        var key = PrivateKeyFile(
            id: "", purpose: purpose, createdAt: now, secret: try .random(byteCount: secretByteCount))
        let digits = try key.publicDigits() ?? Hexadecimal.encode(SecureRandom.bytes(8))
        key.id = "\(prefix)\(purpose.rawValue)-\(digits)"
        return key
    }

    /// The digits that end an asymmetric key's id: the first 8 bytes of SHA-256 over the public key, by which apps and auditors
    /// find it. `nil` for a symmetric key, whose id is random.
    private func publicDigits() throws -> String? {
        try publicKey().map { Hexadecimal.encode(SHA256.digest($0.rawBytes).bytes.prefix(8)) }
    }

    /// Whether a root key wraps the secret on disk.
    package var isWrapped: Bool { Self.isWrapped(purpose) }

    private static func isWrapped(_ purpose: KeyPurpose) -> Bool { !purpose.isAsymmetric && purpose != .root }

    /// Whether the key was made for tests or for `serve --dev`.
    package var isThrowaway: Bool { Self.isThrowaway(id: id) }

    package static func isThrowaway(id: String) -> Bool { id.hasPrefix("dev-") || id.contains("test") }

    /// The public part; `nil` for a symmetric key.
    package func publicKey() throws -> Ed25519PublicKey? {
        purpose.isAsymmetric ? try Ed25519PrivateKey(seed: secret).publicKey : nil
    }

    /// Which key a bare secret is of.
    private var tag: [UInt8] {
        HMACKey(secret).authenticate(
            Array("sendgate/key-tag/v1".utf8) + [0]
                + Self.wrapContext(id: id, purpose: purpose, createdAt: createdAt))
    }

    private static func wrapContext(id: String, purpose: KeyPurpose, createdAt: Instant) -> [UInt8] {
        Array("sendgate/key-file/v1".utf8) + [0] + Array(purpose.rawValue.utf8) + [0] + Array(id.utf8)
            + [0] + Array(String(createdAt.milliseconds).utf8)
    }

    /// Writes `directory/<id>.key`; never overwrites, and is durable when it returns.
    ///
    /// - Parameter root: Wraps the secret of a symmetric key; ignored for others and for the root itself.
    /// - Precondition: There is one where the key ``isWrapped``; nothing would read the file.
    @discardableResult
    package mutating func create(in directory: String, wrappedBy root: PrivateKeyFile?) throws -> String {
        precondition(root != nil || !isWrapped, "a \(purpose.rawValue) key would be written unwrapped")
        let path = "\(directory)/\(id).key"
        try create(at: path, wrappedBy: root)
        if isWrapped, let root { wrappers = [root.id] }
        return path
    }

    private func create(at path: String, wrappedBy root: PrivateKeyFile?) throws {
        var object: JSONObject = [
            "v": 1, "id": .string(id), "purpose": .string(purpose.rawValue),
            "suite": .string(purpose.suite), "created": .integer(createdAt.milliseconds),
        ]
        if let root, isWrapped {
            var plain = secret.withUnsafeBytes { Array($0) }
            defer { plain.zeroise() }
            let wrapped = try AES256GCMKey(root.secret)
                .seal(plain, aad: Self.wrapContext(id: id, purpose: purpose, createdAt: createdAt))
            object["wrapped"] = .string(Hexadecimal.encode(wrapped))
            object["root"] = .string(root.id)
        } else {
            // The digits are written into the bytes below: a `String` of them would stay in memory, as it cannot be zeroed.
            object["secret"] = .string(String(repeating: "0", count: 2 * secret.count))
            object["tag"] = .string(Hexadecimal.encode(tag))
        }
        var bytes = CanonicalJSON.write(.object(object)) + [UInt8(ascii: "\n")]
        defer { bytes.zeroise() }
        if let place = Self.secretPlaces(in: bytes).first { secret.writeHexadecimal(into: &bytes, at: place) }
        try Self.writeExclusively(bytes, to: path)
    }

    /// Where the digits of a `secret` stand. JSON escapes a quotation mark inside a text, so these are members.
    private static func secretPlaces(in bytes: [UInt8]) -> [Range<Int>] {
        let name = Array(#""secret":""#.utf8)
        var places: [Range<Int>] = []
        var index = 0
        while index + name.count <= bytes.count {
            guard bytes[index..<index + name.count].elementsEqual(name) else {
                index += 1
                continue
            }
            let start = index + name.count
            let end = bytes[start...].firstIndex(of: UInt8(ascii: "\"")) ?? bytes.count
            places.append(start..<end)
            index = end
        }
        return places
    }

    /// Takes the secret out of a file's bytes and overwrites its digits with zeros, so that the JSON reader, whose texts cannot
    /// be zeroed, never sees it.
    ///
    /// - Returns: `nil` when there is none, or more than one, or something else than lower-case hexadecimal.
    private static func takeSecret(from bytes: inout [UInt8]) -> SecretBytes? {
        let places = secretPlaces(in: bytes)
        var secret: SecretBytes?
        if places.count == 1 { secret = SecretBytes(hexadecimal: bytes[places[0]]) }
        for place in places {
            for index in place { bytes[index] = UInt8(ascii: "0") }
        }
        return secret
    }

    /// Ends the name of a file while it is written.
    static let unfinishedSuffix = ".part"
    /// Ends the name of a file while it is destroyed.
    static let doomedSuffix = ".doomed"

    /// Creates a file of mode 0400 with these bytes, durably.
    ///
    ///     `<path>.part` written and synchronized → linked as `path` → directory synchronized → `<path>.part` removed
    ///
    /// A kill before the link leaves a `.part`, which no start reads and which ``eraseUnfinished(_:)`` destroys with the secret
    /// that may be in it. A kill after the link leaves the whole key file, and the `.part` as a second name of it.
    private static func writeExclusively(_ bytes: [UInt8], to path: String) throws {
        let part = path + unfinishedSuffix
        func create() -> Int32 {
            open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o400)
        }
        var descriptor = create()
        if descriptor < 0, errno == EEXIST {
            try eraseUnfinished(part)
            descriptor = create()
        }
        guard descriptor >= 0 else { throw KeyFileError.cannotWrite(path: path, reason: systemReason()) }
        do {
            defer { close(descriptor) }
            try write(bytes, to: descriptor, of: path)
            // A link never takes the place of a file that is there, unlike a rename.
            guard link(part, path) == 0 else {
                throw errno == EEXIST
                    ? KeyFileError.exists(path: path)
                    : KeyFileError.cannotWrite(path: path, reason: systemReason())
            }
            try synchronizeDirectory(of: path)
        } catch {
            // The first error says what went wrong; a `.part` that cannot be destroyed now is destroyed by the next start.
            try? eraseUnfinished(part)
            throw error
        }
        // Fails only where another process removed the second name already. Were the removal lost in a crash, the next start
        // would repeat it.
        unlink(part)
    }

    /// Writes all bytes and synchronizes the file.
    private static func write(_ bytes: [UInt8], to descriptor: Int32, of path: String) throws {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress! + written, bytes.count - written)
            }
            guard count > 0 else { throw KeyFileError.cannotWrite(path: path, reason: systemReason()) }
            written += count
        }
        guard fsync(descriptor) == 0 else {
            throw KeyFileError.cannotWrite(path: path, reason: systemReason())
        }
    }

    /// Makes it durable that a file is there, or is not.
    private static func synchronizeDirectory(of path: String) throws {
        let directory = open(
            String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else {
            throw KeyFileError.cannotWrite(path: path, reason: systemReason())
        }
        defer { close(directory) }
        guard fsync(directory) == 0 else {
            throw KeyFileError.cannotWrite(path: path, reason: systemReason())
        }
    }

    /// Destroys the files of a key: their bytes are overwritten, then they are unlinked, durably. Nothing happens when
    /// there are none.
    ///
    /// Copies that the file system or the disk made of the blocks are out of reach. In such a copy a data, index or link key is
    /// still wrapped by the root key; an Ed25519 seed or a root key is not.
    package static func erase(_ id: String, in directory: String) throws {
        for path in try PrivateKeyDirectory.files(of: id, in: directory) { try erase(path) }
    }

    /// Writes a file of the key that this root key wraps, beside its other files; does nothing when there is one, as after an
    /// attempt that failed at a later key.
    func rewrap(in directory: String, by root: PrivateKeyFile) throws {
        guard !wrappers.contains(root.id) else { return }
        let path = "\(directory)/\(id).\(root.id).key"
        do {
            try create(at: path, wrappedBy: root)
        } catch KeyFileError.exists {
            let written = try Self.read(path, roots: [root.id: root])
            guard HMACKey.constantTimeEqual(written.secret, secret) else {
                throw KeyFileError.malformed(path: path, reason: "it has another secret of `\(id)`")
            }
        }
    }

    /// Removes the files of the key that other root keys wrap, after reading back the file that this one wraps.
    ///
    /// - Throws: ``KeyFileError/missingKey(id:purpose:directory:)`` when no file of it opens with this root key; nothing is
    ///   removed then.
    func keepOnly(_ root: PrivateKeyFile, in directory: String) throws -> PrivateKeyFile {
        let files = try PrivateKeyDirectory.files(of: id, in: directory)
        let others = try files.filter { path in
            do {
                return try !Self.read(path, roots: [root.id: root]).wrappers.contains(root.id)
            } catch KeyFileError.wrongRoot {
                return true
            }
        }
        guard others.count < files.count else {
            throw KeyFileError.missingKey(id: id, purpose: purpose, directory: directory)
        }
        for path in others { try Self.erase(path) }
        var kept = self
        kept.wrappers = [root.id]
        return kept
    }

    /// Removes a `.part`: only the name where it is a second name of the finished file, whose bytes are in use; else the bytes
    /// are overwritten first.
    static func eraseUnfinished(_ part: String) throws {
        guard try isSecondName(part) else { return try overwriteAndUnlink(part) }
        guard unlink(part) == 0 else {
            throw KeyFileError.cannotWrite(path: part, reason: systemReason())
        }
        try synchronizeDirectory(of: part)
    }

    /// Whether a `.part` is the same file as the finished key file beside it.
    static func isSecondName(_ part: String) throws -> Bool {
        var (unfinished, finished) = (stat(), stat())
        guard lstat(part, &unfinished) == 0 else {
            throw KeyFileError.cannotRead(path: part, reason: systemReason())
        }
        return lstat(String(part.dropLast(unfinishedSuffix.count)), &finished) == 0
            && (finished.st_dev, finished.st_ino) == (unfinished.st_dev, unfinished.st_ino)
    }

    /// Destroys a file: renames it with ``doomedSuffix``, then overwrites and unlinks it.
    ///
    /// The rename comes first, so that a start never reads a file that is half overwritten. A kill after it leaves a file that
    /// ``PrivateKeyDirectory/eraseUnfinished(in:)`` destroys at the next start.
    static func erase(_ path: String) throws {
        let doomed = path + doomedSuffix
        guard rename(path, doomed) == 0 else {
            throw KeyFileError.cannotWrite(path: path, reason: systemReason())
        }
        try synchronizeDirectory(of: path)
        try overwriteAndUnlink(doomed)
    }

    static func overwriteAndUnlink(_ path: String) throws {
        guard chmod(path, 0o600) == 0 else {
            throw KeyFileError.cannotWrite(path: path, reason: systemReason())
        }
        // As of a file that is read.
        let descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            // What a pipe says that has no reader.
            throw errno == ENXIO
                ? KeyFileError.notAPlainFile(path: path)
                : KeyFileError.cannotWrite(path: path, reason: systemReason())
        }
        defer { close(descriptor) }
        let zeros = [UInt8](repeating: 0, count: byteCountMax)
        guard zeros.withUnsafeBytes({ Glibc.write(descriptor, $0.baseAddress!, $0.count) }) == zeros.count,
            fsync(descriptor) == 0, unlink(path) == 0
        else { throw KeyFileError.cannotWrite(path: path, reason: systemReason()) }
        try synchronizeDirectory(of: path)
    }

    /// Reads one file, checking its mode and shape.
    ///
    /// - Parameters:
    ///   - roots: Root keys by id, for a wrapped secret.
    ///   - credentials: The folder a service manager lays credentials in, `$CREDENTIALS_DIRECTORY`.
    package static func read(
        _ path: String, roots: [String: PrivateKeyFile], credentials: String? = nil
    ) throws -> PrivateKeyFile {
        var bytes = try readPlainFile(path, credentials: credentials)
        let unwrapped = takeSecret(from: &bytes)
        func malformed(_ reason: String) -> KeyFileError { .malformed(path: path, reason: reason) }
        let trimmed = bytes.last == UInt8(ascii: "\n") ? Array(bytes.dropLast()) : bytes
        guard let value = try? CanonicalJSON.read(trimmed), case .object(let object) = value,
            CanonicalJSON.write(value) == trimmed
        else { throw malformed("not canonical JSON") }
        guard object["v"] == 1 else { throw malformed("unknown version") }
        guard case .string(let id)? = object["id"],
            case .string(let purposeName)? = object["purpose"],
            let purpose = KeyPurpose(rawValue: purposeName),
            object["suite"] == .string(purpose.suite),
            case .integer(let created)? = object["created"]
        else { throw malformed("id, purpose, suite or created is missing or unknown") }
        let isWrapped = Self.isWrapped(purpose)
        guard object.count == 7 else {
            throw malformed("it has other members than a \(purpose.rawValue) key has")
        }
        let secret: SecretBytes
        var wrappers: Set<String> = []
        if isWrapped, case .string(let text)? = object["wrapped"], case .string(let rootID)? = object["root"]
        {
            guard let root = roots[rootID] else { throw KeyFileError.wrongRoot(path: path) }
            guard let wrapped = Hexadecimal.decode(text) else {
                throw malformed("wrapped is not hexadecimal")
            }
            do {
                var plain = try AES256GCMKey(root.secret)
                    .open(
                        wrapped,
                        aad: wrapContext(id: id, purpose: purpose, createdAt: Instant(milliseconds: created)))
                defer { plain.zeroise() }
                secret = SecretBytes(copying: plain)
            } catch {
                throw KeyFileError.wrongRoot(path: path)
            }
            wrappers = [rootID]
        } else if !isWrapped, case .string? = object["secret"], let unwrapped {
            secret = unwrapped
        } else {
            // The wrapping also proves that the key is one of this gateway's: a user who may write here, and has no root key,
            // could otherwise put a link key of their own in.
            throw malformed(isWrapped ? "no root key wraps it" : "the secret is missing")
        }
        guard secret.count == secretByteCount else {
            throw malformed("the secret has \(secret.count) bytes, not \(secretByteCount)")
        }
        var key = PrivateKeyFile(
            id: id, purpose: purpose, createdAt: Instant(milliseconds: created), secret: secret)
        key.wrappers = wrappers
        if let digits = try key.publicDigits(), !id.hasSuffix("-\(digits)") {
            throw malformed("the secret is not that of the key `\(id)`")
        }
        let tag = Array((object["tag"]?.stringValue ?? "").utf8)
        guard isWrapped || HMACKey.constantTimeEqual(tag, Array(Hexadecimal.encode(key.tag).utf8)) else {
            throw malformed(
                "its secret was not written for the \(purposeName) key `\(id)` of \(key.createdAt.rfc3339)")
        }
        return key
    }

    /// Whether only its owner may read a file, and no user write it but root.
    ///
    /// systemd writes a credential as root's with mode 0440 and an access control list that lets the service's user
    /// read it; the group's bit shows the mask of that list (systemd.exec, "LoadCredential="). No other user can enter the
    /// folder that it is in.
    private static func isPrivate(_ status: stat, at path: String, credentials: String?) -> Bool {
        if status.st_mode & 0o277 == 0 { return true }
        return status.st_uid == 0 && status.st_mode & 0o777 == 0o440 && isCredential(path, below: credentials)
    }

    /// Whether a path is the folder a service manager lays credentials in, or lies below it.
    static func isCredential(_ path: String, below credentials: String?) -> Bool {
        guard let credentials, let folder = resolved(credentials), let file = resolved(path) else {
            return false
        }
        return (file + "/").hasPrefix(folder.hasSuffix("/") ? folder : folder + "/")
    }

    private static func resolved(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private static func readPlainFile(_ path: String, credentials: String?) throws -> [UInt8] {
        // Not blocking: to open a pipe would wait for its writer.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw errno == ELOOP
                ? KeyFileError.notAPlainFile(path: path)
                : KeyFileError.cannotRead(path: path, reason: systemReason())
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw KeyFileError.cannotRead(path: path, reason: systemReason())
        }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size <= byteCountMax else {
            throw KeyFileError.notAPlainFile(path: path)
        }
        guard isPrivate(status, at: path, credentials: credentials) else {
            throw KeyFileError.tooOpen(path: path, mode: status.st_mode & 0o777)
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var filled = 0
        while filled < bytes.count {
            let count = bytes.withUnsafeMutableBytes {
                Glibc.read(descriptor, $0.baseAddress! + filled, $0.count - filled)
            }
            guard count > 0 else {
                bytes.zeroise()
                throw KeyFileError.cannotRead(path: path, reason: "it ended early")
            }
            filled += count
        }
        return bytes
    }

    private static func systemReason() -> String { String(cString: strerror(errno)) }
}

extension SecretBytes {
    /// - Returns: `nil` for an odd length or a character outside `0-9a-f`.
    fileprivate convenience init?(hexadecimal digits: ArraySlice<UInt8>) {
        guard digits.count.isMultiple(of: 2), digits.allSatisfy({ Self.value($0) != nil }) else { return nil }
        self.init(byteCount: digits.count / 2) { secret in
            for index in secret.indices {
                let place = digits.startIndex + 2 * index
                secret[index] = (Self.value(digits[place]) ?? 0) << 4 | (Self.value(digits[place + 1]) ?? 0)
            }
        }
    }

    /// - Precondition: `place` has two digits for each byte.
    fileprivate func writeHexadecimal(into bytes: inout [UInt8], at place: Range<Int>) {
        precondition(place.count == 2 * count)
        func digit(_ value: UInt8) -> UInt8 {
            value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
        }
        withUnsafeBytes { secret in
            for index in secret.indices {
                bytes[place.lowerBound + 2 * index] = digit(secret[index] >> 4)
                bytes[place.lowerBound + 2 * index + 1] = digit(secret[index] & 15)
            }
        }
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
