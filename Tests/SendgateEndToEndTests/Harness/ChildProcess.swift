import Foundation
import Glibc

/// What can go wrong around a child rather than in what is tested.
struct HarnessError: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}

/// One process, in a process group of its own, that never outlives the test.
///
/// Everything here blocks the calling thread, with a deadline each: a test of processes has nothing else to do.
/// The kernel kills the child when the thread that made it ends (`PR_SET_PDEATHSIG`), so tests that use this
/// are synchronous functions.
final class ChildProcess {
    /// How a process ended.
    enum Ending: Equatable {
        case exit(Int32)
        case signal(Int32)
    }

    let id: pid_t
    let name: String
    /// Where its standard error goes.
    let errorPath: String
    private let input: Int32
    private let output: Int32
    private var unread: [UInt8] = []
    private var ending: Ending?

    /// - Parameters:
    ///   - command: The program's full path and its arguments.
    ///   - environment: Added to the test's own.
    ///   - errorPath: A file its standard error is appended to.
    ///   - descriptorCountMax: Soft and hard `RLIMIT_NOFILE` of the child; the test's own when `nil`.
    init(
        _ command: [String], environment: [String: String] = [:], errorPath: String,
        descriptorCountMax: Int? = nil
    ) throws {
        name = (command[0] as NSString).lastPathComponent
        self.errorPath = errorPath
        var wrapped = ["/usr/bin/setpriv", "--pdeathsig", "KILL", "--"]
        if let descriptorCountMax {
            wrapped = ["/usr/bin/prlimit", "--nofile=\(descriptorCountMax):\(descriptorCountMax)"] + wrapped
        }
        wrapped += command

        // One at a time: a child that inherits another's pipe would keep it from ever ending.
        Self.spawning.lock()
        defer { Self.spawning.unlock() }
        let (forInput, forOutput) = (try Self.pipe(), try Self.pipe())
        defer {
            close(forInput.readEnd)
            close(forOutput.writeEnd)
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, forInput.readEnd, STDIN_FILENO)
        posix_spawn_file_actions_adddup2(&actions, forOutput.writeEnd, STDOUT_FILENO)
        posix_spawn_file_actions_addopen(
            &actions, STDERR_FILENO, errorPath, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The test runner may ignore SIGPIPE or block signals; the child starts as from a shell.
        var (none, all) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes,
            Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        var variables = ProcessInfo.processInfo.environment
        // A killed process must die, not print where it was.
        variables["SWIFT_BACKTRACE"] = "enable=no"
        // One tzdata, one language, whatever the developer's shell says.
        variables["LC_ALL"] = "C.UTF-8"
        variables.merge(environment) { $1 }
        var arguments = wrapped.map { strdup($0) } + [nil]
        var assignments = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { (arguments + assignments).forEach { free($0) } }
        var child: pid_t = 0
        let failure = posix_spawn(&child, wrapped[0], &actions, &attributes, &arguments, &assignments)
        guard failure == 0 else {
            close(forInput.writeEnd)
            close(forOutput.readEnd)
            throw HarnessError("cannot start `\(wrapped[0])`: \(String(cString: strerror(failure)))")
        }
        id = child
        input = forInput.writeEnd
        output = forOutput.readEnd
    }

    private static let spawning = NSLock()

    private static func pipe() throws -> (readEnd: Int32, writeEnd: Int32) {
        var ends: [Int32] = [-1, -1]
        guard Glibc.pipe(&ends) == 0 else {
            throw HarnessError("no pipe: \(String(cString: strerror(errno)))")
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    deinit {
        kill()
        close(input)
        close(output)
    }

    /// Writes a line to its standard input.
    func write(line: String) throws {
        let bytes = Array("\(line)\n".utf8)
        guard Glibc.write(input, bytes, bytes.count) == bytes.count else {
            throw HarnessError("`\(name)` does not read its input: \(errors)")
        }
    }

    /// The next line of its standard output.
    ///
    /// - Throws: When there is none within the time, with what it said on standard error.
    func readLine(within seconds: Double) throws -> String {
        let deadline = Deadline(seconds: seconds)
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: unread[..<end], as: UTF8.self)
                unread.removeSubrange(...end)
                return line
            }
            guard try readMore(until: deadline) else {
                throw HarnessError("`\(name)` ended without a line: \(errors)")
            }
        }
    }

    /// Everything it still writes to its standard output, until it closes it.
    func readToEnd(within seconds: Double) throws -> String {
        let deadline = Deadline(seconds: seconds)
        while try readMore(until: deadline) {}
        defer { unread = [] }
        return String(decoding: unread, as: UTF8.self)
    }

    private func readMore(until deadline: Deadline) throws -> Bool {
        guard try deadline.wait(for: output, POLLIN) else {
            throw HarnessError("`\(name)` said nothing in time: \(errors)")
        }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = read(output, &buffer, buffer.count)
        guard count > 0 else { return false }
        unread += buffer[..<count]
        return true
    }

    /// What it has written to its standard error, at most the last 4,000 bytes.
    var errors: String {
        // Made with the process; a test that could not read it would find nothing in it.
        let data = try! Data(contentsOf: URL(fileURLWithPath: errorPath))
        return String(decoding: data.suffix(4000), as: UTF8.self)
    }

    /// To its whole group: what wraps it, strace for one, passes nothing on.
    func signal(_ number: Int32) { _ = Glibc.kill(-id, number) }

    /// SIGKILL to its whole group, and waits for its end.
    @discardableResult
    func kill() -> Ending {
        if let ending { return ending }
        _ = Glibc.kill(-id, SIGKILL)
        return reap(options: 0) ?? .signal(SIGKILL)
    }

    /// Whether it still runs.
    var isRunning: Bool { ending == nil && reap(options: WNOHANG) == nil }

    /// Waits for its end; kills it when it takes longer.
    ///
    /// - Throws: When it had to be killed.
    func waitForEnd(within seconds: Double) throws -> Ending {
        if let ending { return ending }
        let (id, hasEnded) = (id, DispatchSemaphore(value: 0))
        Thread {
            var information = siginfo_t()
            // WNOWAIT leaves it to be reaped below, so its id cannot become another process's meanwhile.
            while waitid(P_PID, id_t(id), &information, WEXITED | WNOWAIT) == -1, errno == EINTR {}
            hasEnded.signal()
        }.start()
        guard hasEnded.wait(timeout: .now() + seconds) == .success else {
            kill()
            throw HarnessError("`\(name)` did not end within \(seconds) s: \(errors)")
        }
        return reap(options: 0) ?? .signal(SIGKILL)
    }

    private func reap(options: Int32) -> Ending? {
        var status: Int32 = 0
        while true {
            let result = waitpid(id, &status, options)
            if result == -1, errno == EINTR { continue }
            guard result == id else { return nil }
            let signal = status & 0x7F
            let ending: Ending = signal == 0 ? .exit((status >> 8) & 0xFF) : .signal(signal)
            self.ending = ending
            return ending
        }
    }
}

/// A moment up to which something may take.
struct Deadline {
    private let instant: ContinuousClock.Instant

    init(seconds: Double) { instant = .now + .seconds(seconds) }

    var isPast: Bool { .now >= instant }

    /// - Parameter events: Besides a hang-up, which poll(2) always tells; 0 waits for that alone.
    /// - Returns: Whether `descriptor` became ready before the moment.
    func wait(for descriptor: Int32, _ events: Int32) throws -> Bool {
        while true {
            let (seconds, fraction) = max(.zero, instant - .now).components
            let milliseconds = seconds * 1000 + fraction / 1_000_000_000_000_000
            var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
            let count = poll(&entry, 1, Int32(clamping: milliseconds + 1))
            if count > 0 { return true }
            if count < 0, errno != EINTR { throw HarnessError("poll: \(String(cString: strerror(errno)))") }
            if count == 0, isPast { return false }
        }
    }
}

/// What one command printed and how it ended.
struct Finished {
    var ending: ChildProcess.Ending
    var output: String
    var errors: String

    /// Runs a command to its end.
    static func run(
        _ command: [String], environment: [String: String] = [:], in scratch: Scratch, within seconds: Double,
        input: String? = nil
    ) throws -> Finished {
        let child = try ChildProcess(
            command, environment: environment,
            errorPath: scratch.path("stderr-\(UUID().uuidString.prefix(8))"))
        if let input { try child.write(line: input) }
        let output = try child.readToEnd(within: seconds)
        return Finished(ending: try child.waitForEnd(within: seconds), output: output, errors: child.errors)
    }
}
