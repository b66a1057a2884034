import Foundation
import Testing

/// The built binary, run as a user runs it.
struct CommandLineRun {
    let status: Int32
    let output: String
    let errors: String

    /// - Parameter environment: Added to a bare one, so that nothing of the test's own leaks in.
    init(_ arguments: String..., input: String = "", environment: [String: String] = [:]) throws {
        try self.init(arguments, input: input, environment: environment)
    }

    init(_ arguments: [String], input: String = "", environment: [String: String] = [:]) throws {
        let folder = try TemporaryFolder()
        _ = try folder.file("in.txt", input)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // Files rather than pipes: no output can fill one and stop the command.
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, folder.path("in.txt"), O_RDONLY, 0)
        for (descriptor, name) in [(STDOUT_FILENO, "out.txt"), (STDERR_FILENO, "err.txt")] {
            posix_spawn_file_actions_addopen(
                &actions, descriptor, folder.path(name), O_WRONLY | O_CREAT | O_EXCL, 0o600)
        }
        let bare = ["PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"].merging(environment) { $1 }
        let words =
            ["env", "-C", Self.repository.path, "-i"] + bare.map { "\($0.key)=\($0.value)" }
            + [Self.binary.path] + arguments
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
    static var binary: URL {
        var folder = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        for _ in 0..<4 {
            let candidate = folder.appending(path: "sendgate")
            if FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate }
            folder.deleteLastPathComponent()
        }
        return folder
    }

    /// Tests/SendgateCommandTests is two steps below it.
    static var repository: URL {
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
    }

    static var policies: String { repository.appending(path: "Policies").path }
}

/// A folder that is gone when the last who holds it lets go.
final class TemporaryFolder {
    let root: String

    init() throws {
        var template = Array("/tmp/sendgate-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw CocoaError(.fileWriteUnknown) }
        root = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }

    deinit { try? FileManager.default.removeItem(atPath: root) }

    func path(_ name: String) -> String { "\(root)/\(name)" }

    /// Writes a file and returns its path.
    func file(_ name: String, _ text: String) throws -> String {
        try text.write(toFile: path(name), atomically: true, encoding: .utf8)
        return path(name)
    }

    /// A copy of the repository's rule book that a test may change.
    func policies() throws -> String {
        let copy = path("Policies")
        try FileManager.default.copyItem(atPath: CommandLineRun.policies, toPath: copy)
        return copy
    }

    /// Replaces one text that must be there.
    func edit(_ name: String, _ old: String, _ new: String) throws {
        let text = try String(contentsOfFile: path(name), encoding: .utf8)
        try #require(text.contains(old), "\(name) does not say \(old)")
        try text.replacingOccurrences(of: old, with: new)
            .write(toFile: path(name), atomically: true, encoding: .utf8)
    }
}
