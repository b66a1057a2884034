import CommandTerminal
import Foundation
import Synchronization
import Testing

@testable import sendgate

/// One command line, run in this process with streams of its own.
struct CommandLineRun {
    let status: Int32
    let output: String
    let errors: String

    /// - Parameters:
    ///   - input: What `-` reads.
    ///   - environment: Added to a bare one, so that nothing of the test's own leaks in.
    init(_ arguments: String..., input: String = "", environment: [String: String] = [:]) async throws {
        try await self.init(arguments, input: input, environment: environment)
    }

    init(_ arguments: [String], input: String = "", environment: [String: String] = [:]) async throws {
        try #require(Self.isAtHome, "the tests cannot work in the repository's folder")
        let folder = try TemporaryFolder()
        let descriptor = open(try folder.file("in.txt", input), O_RDONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        let streams = Mutex<(output: [UInt8], errors: [UInt8])>(([], []))
        let console = Console(
            writeOutput: { bytes in streams.withLock { $0.output += bytes } },
            writeErrors: { bytes in streams.withLock { $0.errors += bytes } },
            inputDescriptor: descriptor,
            environment: Self.bareEnvironment.merging(environment) { $1 }, isWatched: false)
        status = await Console.$current.withValue(console) { await Sendgate.run(arguments) }.rawValue
        (output, errors) = streams.withLock {
            (String(decoding: $0.output, as: UTF8.self), String(decoding: $0.errors, as: UTF8.self))
        }
    }

    static let bareEnvironment = ["PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"]

    /// Relative paths in the tests are the repository's.
    private static let isAtHome = FileManager.default.changeCurrentDirectoryPath(repository.path)

    /// Tests/SendgateCommandTests is two steps below it.
    static var repository: URL {
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
    }

    static var policies: String { repository.appending(path: "Policies").path }
}

/// The built binary, run as a user runs it: for what only a process has.
struct BinaryRun {
    let status: Int32
    let output: String
    let errors: String

    init(_ arguments: [String]) throws {
        let folder = try TemporaryFolder()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // Files rather than pipes: no output can fill one and stop the command.
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        for (descriptor, name) in [(STDOUT_FILENO, "out.txt"), (STDERR_FILENO, "err.txt")] {
            posix_spawn_file_actions_addopen(
                &actions, descriptor, folder.path(name), O_WRONLY | O_CREAT | O_EXCL, 0o600)
        }
        let words =
            ["env", "-C", CommandLineRun.repository.path, "-i"]
            + CommandLineRun.bareEnvironment.map { "\($0.key)=\($0.value)" } + [Self.path] + arguments
        var pointers = words.map { strdup($0) } + [nil]
        defer { pointers.forEach { free($0) } }
        var child: pid_t = 0
        let failure = posix_spawn(&child, "/usr/bin/env", &actions, nil, &pointers, nil)
        try #require(failure == 0, "cannot start env: \(String(cString: strerror(failure)))")
        var ending: Int32 = 0
        while waitpid(child, &ending, 0) < 0 { try #require(errno == EINTR) }
        try #require(ending & 0x7F == 0, "ended by signal \(ending & 0x7F)")
        status = ending >> 8 & 0xFF
        output = try String(contentsOfFile: folder.path("out.txt"), encoding: .utf8)
        errors = try String(contentsOfFile: folder.path("err.txt"), encoding: .utf8)
    }

    /// `sendgate` beside the test bundle.
    private static var path: String {
        var folder = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        for _ in 0..<4 {
            let candidate = folder.appending(path: "sendgate")
            if FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate.path }
            folder.deleteLastPathComponent()
        }
        return "sendgate, which is not beside the tests"
    }
}

/// A folder that is gone when the last who holds it lets go. Nothing is ever written outside of it, whatever links
/// lead out.
final class TemporaryFolder {
    /// Without links, so that a path can be told to be inside.
    let root: String

    struct WouldLeave: Error, CustomStringConvertible {
        var path: String
        var description: String { "`\(path)` leads out of the test's own folder" }
    }

    init() throws {
        var template = Array("/tmp/sendgate-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw CocoaError(.fileWriteUnknown) }
        root = try Self.real(template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) })
    }

    deinit { try? FileManager.default.removeItem(atPath: root) }

    func path(_ name: String) -> String { "\(root)/\(name)" }

    /// Writes a file and returns its path.
    func file(_ name: String, _ text: String) throws -> String {
        try checkInside(path(name))
        try text.write(toFile: path(name), atomically: true, encoding: .utf8)
        return path(name)
    }

    /// A copy of the repository's bundle that a test may change.
    ///
    /// Copied file by file from where the folder really is: `copyItem` would copy a link as a link, and a test that
    /// edits its "copy" would edit the repository.
    func policies() throws -> String {
        let copy = path("Policies")
        let source = try Self.real(CommandLineRun.policies)
        try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: false)
        for name in try FileManager.default.subpathsOfDirectory(atPath: source).sorted() {
            var isDirectory: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: "\(source)/\(name)", isDirectory: &isDirectory)
            if isDirectory.boolValue {
                try FileManager.default.createDirectory(
                    atPath: "\(copy)/\(name)", withIntermediateDirectories: false)
            } else {
                try Data(contentsOf: URL(filePath: "\(source)/\(name)"))
                    .write(to: URL(filePath: "\(copy)/\(name)"), options: .withoutOverwriting)
            }
        }
        return copy
    }

    /// Replaces one text that must be there.
    func edit(_ name: String, _ old: String, _ new: String) throws {
        let text = try String(contentsOfFile: path(name), encoding: .utf8)
        try #require(text.contains(old), "\(name) does not say \(old)")
        _ = try file(name, text.replacingOccurrences(of: old, with: new))
    }

    /// - Throws: ``WouldLeave`` when the file is a link, or a folder on the way to it is.
    private func checkInside(_ path: String) throws {
        let folder = try Self.real((path as NSString).deletingLastPathComponent)
        guard folder == root || folder.hasPrefix("\(root)/") else { throw WouldLeave(path: path) }
        var status = stat()
        if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK { throw WouldLeave(path: path) }
    }

    private static func real(_ path: String) throws -> String {
        guard let resolved = realpath(path, nil) else { throw CocoaError(.fileNoSuchFile) }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}
