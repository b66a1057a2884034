package import SealedFormat
package import GateVocabulary
import Glibc
import KeyLifecycle
import OpenSSLCrypto

/// The private keys of a gateway, as they are in the operator's key directory. There is no default path, and no file of it
/// belongs in a repository.
package struct PrivateKeyDirectory: Sendable {
    /// Newest first within a purpose. Which of them is in use is the keyring's to say (`Keyring`); the first start of a
    /// gateway takes the newest. The others still open or verify what they protected.
    package let keys: [KeyPurpose: [PrivateKeyFile]]
    package let path: String
    /// A root key that is kept elsewhere.
    package let rootPath: String?
    /// The folder a service manager lays credentials in.
    package let credentials: String?

    /// Purposes that a gateway cannot run without.
    package static let required: [KeyPurpose] = [.root, .origin, .trail, .data, .index, .link]

    package static let fileCountMax = 256

    /// Makes one key of every purpose that a gateway has keys of.
    ///
    /// - Parameters:
    ///   - prefix: `dev-` for throwaway keys, which production refuses.
    ///   - rootDirectory: Where the root key goes; beside the others when `nil`.
    /// - Returns: The paths written, root first.
    @discardableResult
    package static func initialize(
        at path: String, rootIn rootDirectory: String? = nil, prefix: String = "", now: Instant
    ) throws -> [String] {
        try makeEmpty(path)
        var root = try PrivateKeyFile.generate(.root, prefix: prefix, at: now)
        var paths = [try root.create(in: rootDirectory ?? path, wrappedBy: nil)]
        for purpose in KeyPurpose.ofGateway where purpose != .root {
            var key = try PrivateKeyFile.generate(purpose, prefix: prefix, at: now)
            paths.append(try key.create(in: path, wrappedBy: root))
        }
        return paths
    }

    /// Writes the key of a role that signs bundles, or of the authority that signs keysets, into a directory of its own.
    ///
    /// - Returns: The path written.
    package static func initialize(at path: String, with offlineKey: PrivateKeyFile) throws -> String {
        precondition(
            offlineKey.purpose.isOffline, "a key for `\(offlineKey.purpose)` in a directory of its own")
        try makeEmpty(path)
        var key = offlineKey
        return try key.create(in: path, wrappedBy: nil)
    }

    /// Makes the directory where it is not there, and requires that only its owner may enter it and that it has no keys.
    ///
    /// A ceremony that was killed may have left a secret in a `.part`: it is destroyed. Where the directory has keys, another
    /// process may be writing one, so only the second names of finished files go, which that process removes too.
    private static func makeEmpty(_ path: String) throws {
        if mkdir(path, 0o700) != 0, errno != EEXIST {
            throw KeyFileError.cannotWrite(path: path, reason: String(cString: strerror(errno)))
        }
        try requirePrivate(path, credentials: nil)
        if let first = try names(in: path).first {
            for part in try unfinished(in: path) where try PrivateKeyFile.isSecondName(part) {
                try PrivateKeyFile.eraseUnfinished(part)
            }
            throw KeyFileError.exists(path: "\(path)/\(first)")
        }
        try eraseUnfinished(in: path)
    }

    /// Reads every `*.key` file of the directory.
    ///
    /// - Parameters:
    ///   - rootPath: A root key kept elsewhere, e.g. a systemd credential; `nil` when it lies with the others.
    ///   - credentials: The folder a service manager lays credentials in, `$CREDENTIALS_DIRECTORY`.
    ///   - acceptsThrowaway: With `--dev` only.
    ///   - ownerID: For root, who looks at a gateway's keys and does not run it: the gateway's user.
    package init(
        at path: String, rootPath: String? = nil, credentials: String? = nil, acceptsThrowaway: Bool,
        ownedBy ownerID: UInt32? = nil
    ) throws {
        try Self.requirePrivate(path, credentials: credentials, ownerID: ownerID)
        var roots: [String: PrivateKeyFile] = [:]
        let files = try Self.names(in: path).map { "\(path)/\($0)" }
        guard files.count <= Self.fileCountMax else { throw KeyFileError.tooManyFiles(directory: path) }
        let rootFiles = files.filter { Self.isRootFile($0) } + (rootPath.map { [$0] } ?? [])
        for file in rootFiles {
            let key = try PrivateKeyFile.read(file, roots: [:], credentials: credentials)
            // A root key that is kept elsewhere may have any name, e.g. that of a credential.
            if file != rootPath { try Self.requireName(of: file, for: key) }
            roots[key.id] = key
        }
        var keys: [KeyPurpose: [PrivateKeyFile]] = [.root: Array(roots.values)]
        var unopened: [(id: Substring, error: KeyFileError)] = []
        for file in files where !Self.isRootFile(file) {
            do {
                let key = try PrivateKeyFile.read(file, roots: roots, credentials: credentials)
                try Self.requireName(of: file, for: key)
                // Where the change of a root key was interrupted, a key is in two files.
                if let known = keys[key.purpose], let place = known.firstIndex(where: { $0.id == key.id }) {
                    guard HMACKey.constantTimeEqual(known[place].secret, key.secret) else {
                        throw KeyFileError.malformed(
                            path: file, reason: "another file has another secret of `\(key.id)`")
                    }
                    keys[key.purpose]?[place].wrappers.formUnion(key.wrappers)
                } else {
                    keys[key.purpose, default: []].append(key)
                }
            } catch KeyFileError.wrongRoot(let path) {
                unopened.append((Self.id(of: file), .wrongRoot(path: path)))
            }
        }
        // A file that no root key here opens does no harm where another file of its key was opened.
        for (id, error) in unopened where !keys.values.joined().contains(where: { $0.id == id }) {
            throw roots.isEmpty ? KeyFileError.missing(purpose: .root, directory: path) : error
        }
        for (purpose, list) in keys {
            keys[purpose] = list.sorted { ($0.createdAt, $0.id) > ($1.createdAt, $1.id) }
        }
        if !acceptsThrowaway, let key = keys.values.joined().first(where: \.isThrowaway) {
            throw KeyFileError.throwawayKey(path: path, id: key.id)
        }
        if let key = try keys.values.joined().first(where: \.purpose.isOffline)
            ?? Self.strayOfflineKey(in: path)
        {
            throw KeyFileError.offlineKeyPresent(id: key.id, purpose: key.purpose, directory: path)
        }
        for purpose in Self.required where keys[purpose, default: []].isEmpty {
            throw KeyFileError.missing(purpose: purpose, directory: path)
        }
        self.keys = keys
        self.path = path
        self.rootPath = rootPath
        self.credentials = credentials
    }

    /// Requires that the directory is the gateway's own, or root's, and closed to other users.
    ///
    /// A user who may write in it could put a key of their own in the place of one of the gateway's. A user who may enter it
    /// could read a key file whose mode is open for a moment, as during a copy or when a backup is put back.
    private static func requirePrivate(
        _ path: String, credentials: String?, ownerID: UInt32? = nil
    ) throws {
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw KeyFileError.cannotRead(path: path, reason: String(cString: strerror(errno)))
        }
        guard status.st_uid == 0 || status.st_uid == geteuid() || status.st_uid == ownerID else {
            throw KeyFileError.foreignDirectory(path: path, owner: status.st_uid)
        }
        if status.st_mode & 0o077 == 0 { return }
        // systemd's folder of credentials is root's, and its list lets the service's user in (``PrivateKeyFile``).
        guard status.st_uid == 0, status.st_mode & 0o027 == 0,
            PrivateKeyFile.isCredential(path, below: credentials)
        else { throw KeyFileError.directoryTooOpen(path: path, mode: status.st_mode & 0o7777) }
    }

    /// The newest key of a purpose, which is the one in use until the keyring says otherwise. A purpose of ``required`` always
    /// has one.
    package func current(_ purpose: KeyPurpose) throws -> PrivateKeyFile {
        guard let key = keys[purpose]?.first else {
            throw KeyFileError.missing(purpose: purpose, directory: path)
        }
        return key
    }

    /// The id in a file's name: `<id>.key`, or `<id>.<root key's id>.key`.
    private static func id(of path: String) -> Substring {
        (path.split(separator: "/").last ?? "").prefix { $0 != "." }
    }

    /// A key is destroyed by the name of its files (``files(of:in:)``).
    private static func requireName(of path: String, for key: PrivateKeyFile) throws {
        guard id(of: path) == key.id else { throw KeyFileError.misnamed(path: path, id: key.id) }
    }

    private static func isRootFile(_ path: String) -> Bool { id(of: path).contains("root-") }

    /// The files of one key.
    static func files(of id: String, in path: String) throws -> [String] {
        try names(in: path).filter { Self.id(of: $0) == id }.map { "\(path)/\($0)" }
    }

    /// Whether a start would read this key: one of its files is there, can be opened, and holds the same secret.
    ///
    /// - Parameters:
    ///   - roots: By id, what opens a wrapped key.
    ///   - rootPath: A root key kept elsewhere, in a file of any name.
    package static func holds(
        _ key: PrivateKeyFile, in path: String, roots: [String: PrivateKeyFile], rootPath: String?,
        credentials: String?
    ) -> Bool {
        let files =
            ((try? files(of: key.id, in: path)) ?? [])
            + (key.purpose == .root ? rootPath.map { [$0] } ?? [] : [])
        return files.contains { file in
            guard let read = try? PrivateKeyFile.read(file, roots: roots, credentials: credentials) else {
                return false
            }
            return read.id == key.id && HMACKey.constantTimeEqual(read.secret, key.secret)
        }
    }

    /// The file that ``requireWritable(at:)`` makes and removes. No key file has such a name.
    private static let probeName = "writable.probe"

    /// Requires that the directory takes a file as long as a key's and lets it go again.
    ///
    /// The file system is asked by doing it: mode bits say nothing to root, and nothing of a file system that is mounted for
    /// reading or full. A kill in between leaves a file of zeros, which is no key and which the next call replaces.
    package static func requireWritable(at path: String) throws {
        let probe = "\(path)/\(probeName)"
        func refusal() -> KeyFileError {
            .cannotWrite(path: probe, reason: String(cString: strerror(errno)))
        }
        guard unlink(probe) == 0 || errno == ENOENT else { throw refusal() }
        let descriptor = open(probe, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw refusal() }
        let zeros = [UInt8](repeating: 0, count: PrivateKeyFile.byteCountMax)
        let isWritten = zeros.withUnsafeBytes { write(descriptor, $0.baseAddress!, $0.count) } == zeros.count
        let failure = isWritten ? nil : refusal()
        close(descriptor)
        guard unlink(probe) == 0 else { throw refusal() }
        if let failure { throw failure }
    }

    /// The same question without a write, for a process that must leave the directory as it is: a full disk is not found out.
    package static func requireAccess(at path: String) throws {
        guard access(path, W_OK | X_OK) == 0 else {
            throw KeyFileError.cannotWrite(path: path, reason: String(cString: strerror(errno)))
        }
    }

    /// Destroys what a kill left of key files that were being written, whose keys were never used, and of key files that were
    /// being destroyed.
    ///
    /// - Warning: Call it only in the one process that writes in the directory, and before it writes: it would destroy the
    ///   file that another process is about to finish.
    package static func eraseUnfinished(in path: String) throws {
        for part in try unfinished(in: path) { try PrivateKeyFile.eraseUnfinished(part) }
        for name in try names(in: path, ending: ".key" + PrivateKeyFile.doomedSuffix) {
            try PrivateKeyFile.overwriteAndUnlink("\(path)/\(name)")
        }
    }

    private static func unfinished(in path: String) throws -> [String] {
        try names(in: path, ending: ".key" + PrivateKeyFile.unfinishedSuffix).map { "\(path)/\($0)" }
    }

    /// A copy of a key that is kept offline, under a name that no key file has, e.g. `policy-….key.bak`.
    private static func strayOfflineKey(in path: String) throws -> PrivateKeyFile? {
        let others = try names(in: path, ending: "").filter { !$0.hasSuffix(".key") }.prefix(fileCountMax)
        // What cannot be read as a key is none of a role's.
        return others.lazy.compactMap { try? PrivateKeyFile.read("\(path)/\($0)", roots: [:]) }
            .first(where: \.purpose.isOffline)
    }

    private static func names(in path: String, ending suffix: String = ".key") throws -> [String] {
        guard let directory = opendir(path) else {
            throw KeyFileError.cannotRead(path: path, reason: String(cString: strerror(errno)))
        }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name.hasSuffix(suffix) { names.append(name) }
        }
        return names.sorted()
    }
}

extension PrivateKeyDirectory {
    /// The text of `Keys/keyring.yaml` for these keys: ids, states, dates and public halves. The newest key of a purpose is
    /// listed as active.
    package func keyringText() throws -> String {
        var text = Self.keyringHeading
        for purpose in KeyPurpose.allCases {
            for (position, key) in (keys[purpose] ?? []).enumerated() {
                text += try key.keyringLines(as: position == 0 ? .active : .deactivated)
            }
        }
        return text
    }

    /// The lines before the first key of a keyring.
    package static let keyringHeading = """
        # Public material only: which keys there are and where each stands in its life.
        # Private keys live where the operator keeps them; README.md beside this file is the ceremony.
        keys:

        """
}

extension PrivateKeyFile {
    /// The lines of one key in a keyring.
    package func keyringLines(as state: KeyState) throws -> String {
        var lines = [
            "  - id: \(id)", "    purpose: \(purpose.rawValue)", "    suite: \(purpose.suite)",
            "    state: \(state.rawValue)", "    created: \"\(createdAt.rfc3339)\"",
        ]
        if let publicKey = try publicKey() {
            lines.append("    public_key: \"\(Hexadecimal.encode(publicKey.rawBytes))\"")
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
