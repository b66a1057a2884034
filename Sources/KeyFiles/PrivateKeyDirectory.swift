import SealedFormat
package import GateVocabulary
import Glibc
import KeyLifecycle
import OpenSSLCrypto

/// Where the operator keeps the gateway's private keys. There is no default path, and none of it belongs
/// in a repository.
package struct PrivateKeyDirectory: Sendable {
    /// Newest first within a purpose: the first is the one in use, the others still read what they wrote.
    package let keys: [KeyPurpose: [PrivateKeyFile]]
    package let path: String

    /// Purposes a gateway cannot run without.
    package static let required: [KeyPurpose] = [.root, .origin, .trail, .data, .index, .link]

    package static let fileCountMax = 256

    /// Makes one key of every purpose.
    ///
    /// - Parameter prefix: `dev-` for throwaway keys, which production refuses.
    /// - Returns: The paths written, root first.
    @discardableResult
    package static func initialize(
        at path: String, prefix: String = "", now: Instant
    ) throws -> [String] {
        if mkdir(path, 0o700) != 0, errno != EEXIST {
            throw KeyFileError.cannotWrite(path: path, reason: String(cString: strerror(errno)))
        }
        try requirePrivate(path, credentials: nil)
        let existing = try names(in: path)
        if let first = existing.first { throw KeyFileError.exists(path: "\(path)/\(first)") }
        var root = try PrivateKeyFile.generate(.root, prefix: prefix, at: now)
        var paths = [try root.create(in: path, wrappedBy: nil)]
        for purpose in KeyPurpose.ofGateway where purpose != .root {
            var key = try PrivateKeyFile.generate(purpose, prefix: prefix, at: now)
            paths.append(try key.create(in: path, wrappedBy: root))
        }
        return paths
    }

    /// Reads every `*.key` file of the directory.
    ///
    /// - Parameters:
    ///   - rootPath: A root key kept elsewhere, e.g. a systemd credential; `nil` when it lies with the others.
    ///   - credentials: The folder a service manager lays credentials in, `$CREDENTIALS_DIRECTORY`.
    ///   - acceptsThrowaway: With `--dev` only.
    package init(
        at path: String, rootPath: String? = nil, credentials: String? = nil, acceptsThrowaway: Bool
    ) throws {
        try Self.requirePrivate(path, credentials: credentials)
        var roots: [String: PrivateKeyFile] = [:]
        let files = try Self.names(in: path).map { "\(path)/\($0)" }
        guard files.count <= Self.fileCountMax else { throw KeyFileError.tooManyFiles(directory: path) }
        let rootFiles = files.filter { Self.isRootFile($0) } + (rootPath.map { [$0] } ?? [])
        for file in rootFiles {
            let key = try PrivateKeyFile.read(file, roots: [:], credentials: credentials)
            roots[key.id] = key
        }
        var keys: [KeyPurpose: [PrivateKeyFile]] = [.root: Array(roots.values)]
        var unopened: [(id: Substring, error: KeyFileError)] = []
        for file in files where !Self.isRootFile(file) {
            do {
                let key = try PrivateKeyFile.read(file, roots: roots, credentials: credentials)
                // Where the change of a root key was interrupted, a key is in two files.
                if let place = keys[key.purpose]?.firstIndex(where: { $0.id == key.id }) {
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
            throw error
        }
        for (purpose, list) in keys {
            keys[purpose] = list.sorted { ($0.createdAt, $0.id) > ($1.createdAt, $1.id) }
        }
        if !acceptsThrowaway, let key = keys.values.joined().first(where: \.isThrowaway) {
            throw KeyFileError.throwawayKey(path: path, id: key.id)
        }
        for purpose in Self.required where keys[purpose, default: []].isEmpty {
            throw KeyFileError.missing(purpose: purpose, directory: path)
        }
        self.keys = keys
        self.path = path
    }

    /// A user who may write in the directory can put a key of their own in the place of one of the gateway's, and one who
    /// may enter it reads whatever file a restore or a copy leaves open for a moment.
    private static func requirePrivate(_ path: String, credentials: String?) throws {
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw KeyFileError.cannotRead(path: path, reason: String(cString: strerror(errno)))
        }
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            throw KeyFileError.foreignDirectory(path: path, owner: status.st_uid)
        }
        if status.st_mode & 0o077 == 0 { return }
        // systemd's folder of credentials is root's, and its list lets the service's user in (``PrivateKeyFile``).
        guard status.st_uid == 0, status.st_mode & 0o027 == 0,
            PrivateKeyFile.isCredential(path, below: credentials)
        else { throw KeyFileError.directoryTooOpen(path: path, mode: status.st_mode & 0o7777) }
    }

    /// The key in use. Required purposes always have one.
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

    private static func isRootFile(_ path: String) -> Bool { id(of: path).contains("root-") }

    /// The files of one key.
    static func files(of id: String, in path: String) throws -> [String] {
        try names(in: path).filter { Self.id(of: $0) == id }.map { "\(path)/\($0)" }
    }

    private static func names(in path: String) throws -> [String] {
        guard let directory = opendir(path) else {
            throw KeyFileError.cannotRead(path: path, reason: String(cString: strerror(errno)))
        }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name.hasSuffix(".key") { names.append(name) }
        }
        return names.sorted()
    }
}

extension PrivateKeyDirectory {
    /// What `Keys/keyring.yaml` says of these keys: ids, states, dates and public parts, nothing else.
    package func keyringText() throws -> String {
        var lines = [
            "# Public material only: which keys there are and where each stands in its life.",
            "# Private keys live where the operator keeps them; README.md beside this file is the ceremony.",
            "keys:",
        ]
        for purpose in KeyPurpose.allCases {
            for (position, key) in (keys[purpose] ?? []).enumerated() {
                lines.append("  - id: \(key.id)")
                lines.append("    purpose: \(purpose.rawValue)")
                lines.append("    suite: \(purpose.suite)")
                lines.append(
                    "    state: \(position == 0 ? KeyState.active.rawValue : KeyState.deactivated.rawValue)")
                lines.append("    created: \"\(key.createdAt.rfc3339)\"")
                if let publicKey = try key.publicKey() {
                    lines.append("    public_key: \"\(Hexadecimal.encode(publicKey.rawBytes))\"")
                }
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
