import Foundation
import Glibc

/// The service manager of `peers/service_manager.py`, which starts services from unit files as systemd does.
final class ServiceManager {
    private let child: ChildProcess
    let folder: String

    struct Answer: Decodable {
        var status: Int?
        var error: String?
        var pid: Int32?
        var ready: Bool?
        /// `STATUS=`, as `systemctl status` shows it.
        var text: String?
        /// Every datagram of the service.
        var notices: [String]?
        var restarts: Int?
    }

    /// - Parameters:
    ///   - root: The root directory of the services.
    ///   - run: Inside it, what the manager makes.
    ///   - units: The folder of the unit files.
    init(in scratch: Scratch, root: String = "/", run: String, units: String, wrapper: [String] = []) throws {
        folder = root == "/" ? run : root + run
        child = try ChildProcess(
            wrapper + [Machine.python, Machine.peer("service_manager.py"), root, run, units],
            errorPath: scratch.path("manager.stderr"))
        _ = try child.readLine(within: 30)
    }

    deinit { child.kill() }

    /// One command, as `systemctl` takes it.
    @discardableResult
    func callAsFunction(_ command: String, within seconds: Double = 150) throws -> Answer {
        try child.write(line: command)
        let line = try child.readLine(within: seconds)
        let answer = try JSONDecoder().decode(Answer.self, from: Data(line.utf8))
        if let error = answer.error { throw HarnessError("`\(command)`: \(error)") }
        return answer
    }

    /// Asks of a service until it is as it was waited for.
    func wait(for service: String, until isThere: (Answer) -> Bool) throws -> Answer {
        let deadline = Deadline(seconds: 60)
        while true {
            let answer = try self("show \(service)")
            if isThere(answer) { return answer }
            guard !deadline.isPast else { throw HarnessError("\(service) is still \(answer)") }
        }
    }

    /// Stops every service.
    func quit() throws {
        try child.write(line: "quit")
        _ = try child.readLine(within: 150)
        _ = try child.waitForEnd(within: 30)
    }
}

/// Clients of `peers/steady_load.py`.
final class SteadyLoad {
    private let child: ChildProcess

    struct Outcome: Decodable {
        var statuses: [String: Int]
        var failures: [String]
        var longestSeconds: Double
        var repeated: Int
    }

    init(_ socket: String, clients: Int = 6, in scratch: Scratch, as user: (UInt32, UInt32)? = nil) throws {
        let account = user.map { ["\($0.0)", "\($0.1)"] } ?? []
        child = try ChildProcess(
            [Machine.python, Machine.peer("steady_load.py"), socket, "\(clients)"] + account,
            errorPath: scratch.path("load.stderr"))
        _ = try child.readLine(within: 30)
    }

    /// Returns once so many more requests were answered.
    func waitForMore(_ count: Int) throws {
        try child.write(line: "more \(count)")
        _ = try child.readLine(within: 90)
    }

    func finish() throws -> Outcome {
        try child.write(line: "finish")
        let line = try child.readLine(within: 120)
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(Outcome.self, from: Data(line.utf8))
    }
}
