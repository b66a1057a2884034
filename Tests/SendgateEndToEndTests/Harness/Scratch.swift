import Foundation
import Glibc

/// A folder of one test's own, removed with everything in it.
final class Scratch {
    let folder: String
    private var mounts: [String] = []

    /// - Parameter isShared: Other users may pass through it.
    init(isShared: Bool = false) throws {
        // Short, because the path of a Unix socket has at most 107 bytes.
        let template = strdup("/tmp/sendgate-e2e-XXXXXX")
        defer { free(template) }
        guard let made = template.flatMap({ mkdtemp($0) }) else { throw HarnessError("no temporary folder") }
        folder = String(cString: made)
        chmod(folder, isShared ? 0o711 : 0o700)
    }

    deinit {
        for mount in mounts.reversed() where umount2(mount, Int32(MNT_DETACH)) != 0 {
            FileHandle.standardError.write(Data("`\(mount)` stays mounted\n".utf8))
            return
        }
        try? FileManager.default.removeItem(atPath: folder)
    }

    func path(_ name: String) -> String { "\(folder)/\(name)" }

    @discardableResult
    func write(_ name: String, _ text: String, mode: mode_t = 0o600) throws -> String {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path(name)))
        chmod(path(name), mode)
        return path(name)
    }

    /// A small disk of its own. Needs root.
    func mountSmallDisk(_ name: String, byteCount: Int) throws -> String {
        let path = path(name)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        guard mount("tmpfs", path, "tmpfs", 0, "size=\(byteCount),mode=0700") == 0 else {
            throw HarnessError("cannot mount a tmpfs: \(String(cString: strerror(errno)))")
        }
        mounts.append(path)
        return path
    }

    /// Makes a disk read-only, or writable again.
    static func remount(_ path: String, readOnly: Bool) throws {
        let flags = UInt(MS_REMOUNT) | (readOnly ? UInt(MS_RDONLY) : 0)
        guard mount("tmpfs", path, "tmpfs", flags, nil) == 0 else {
            throw HarnessError("cannot remount `\(path)`: \(String(cString: strerror(errno)))")
        }
    }
}

/// What lies in a folder.
enum FileTree {
    /// Paths of all regular files below `folder`, relative to it, in order.
    static func files(in folder: String) throws -> [String] {
        guard let all = FileManager.default.enumerator(atPath: folder) else {
            throw HarnessError("cannot list `\(folder)`")
        }
        return all.compactMap { $0 as? String }.filter { path in
            var isFolder: ObjCBool = false
            return FileManager.default.fileExists(atPath: "\(folder)/\(path)", isDirectory: &isFolder)
                && !isFolder.boolValue
        }.sorted()
    }
}

/// What the tests find on this machine: the binary, the foreign peers, the repository.
enum Machine {
    static let repository = String(#filePath.components(separatedBy: "/Tests/SendgateEndToEndTests/")[0])
    static let policies = "\(repository)/Policies"

    /// The product as built, or `SENDGATE_BINARY`.
    static let sendgate = environment("SENDGATE_BINARY") ?? "\(repository)/.build/debug/sendgate"

    /// The other product, which lies beside it.
    static let courier = "\((sendgate as NSString).deletingLastPathComponent)/sendgate-courier"

    /// The Python environment that `make peers` makes, or `SENDGATE_PEERS`.
    private static let peers = environment("SENDGATE_PEERS") ?? "\(repository)/.build/peers"
    static let python = "\(peers)/bin/python"
    static let schemathesis = "\(peers)/bin/schemathesis"
    /// `verify_tiles.go`, built by `make peers`.
    static let verifyTiles = "\(peers)/bin/verify_tiles"
    /// `open_vectors.go`, built by `make peers`.
    static let openVectors = "\(peers)/bin/open_vectors"

    /// Of the Debian package `prometheus`, unpacked by `make peers`.
    static let promtool = "\(peers)/bin/promtool"
    static let prometheus = "\(peers)/bin/prometheus"

    /// What the handbook's programs are run with. The binary under test comes first, then the peers' Python, and what else the
    /// build made: the handbook's own program.
    static let commands: [String: String] = [
        "PATH": [
            (sendgate as NSString).deletingLastPathComponent, "\(peers)/bin", "\(repository)/.build/debug",
            environment("PATH") ?? "/usr/bin:/bin",
        ].joined(separator: ":"),
        "GOCACHE": "\(repository)/.build/go-cache", "GO111MODULE": "off", "GOTOOLCHAIN": "local",
    ]

    static func peer(_ name: String) -> String { "\(repository)/Tests/SendgateEndToEndTests/peers/\(name)" }

    /// Tests of other users and of a full disk need to be root, as the machines that run `make test` are. A test that
    /// cannot be run fails.
    static func requireRoot(_ what: String) throws {
        guard geteuid() != 0 else { return }
        throw HarnessError(
            "this test needs root \(what): run `sudo make test`, or `unshare --map-root-user --map-auto --mount make test`"
        )
    }

    private static func environment(_ name: String) -> String? {
        ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }
}
