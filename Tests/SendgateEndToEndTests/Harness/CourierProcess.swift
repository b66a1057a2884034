import Foundation

/// `sendgate-courier serve --dev` in a scratch folder.
final class CourierProcess {
    let folder: String
    private let errorPath: String
    private let descriptorCountMax: Int?
    private(set) var child: ChildProcess

    init(
        in scratch: Scratch, folder: String = "courier", errors: String = "courier.stderr",
        descriptorCountMax: Int? = nil
    ) throws {
        self.folder = scratch.path(folder)
        self.descriptorCountMax = descriptorCountMax
        errorPath = scratch.path(errors)
        child = try Self.launch(self.folder, errorPath, descriptorCountMax)
    }

    private static func launch(
        _ folder: String, _ errorPath: String, _ descriptorCountMax: Int?
    ) throws -> ChildProcess {
        try ChildProcess(
            [Machine.courier, "serve", "--dev", folder, "--json"], errorPath: errorPath,
            descriptorCountMax: descriptorCountMax)
    }

    var socket: String { "\(folder)/courier.sock" }

    func waitUntilReady() throws {
        let line = try child.readLine(within: 30)
        guard line.contains(#""ready":true"#) else { throw HarnessError("not ready: \(line)") }
    }

    /// `kill -9`.
    func kill() { child.kill() }

    /// Starts it again after its end, and does not wait.
    func relaunch() throws { child = try Self.launch(folder, errorPath, descriptorCountMax) }

    func ask(_ target: String) throws -> Reply {
        try RawConnection("\(folder)/operations.sock").request("GET", target)
    }

    /// What would have gone to providers.
    func onward() throws -> [Substring] {
        try String(contentsOfFile: "\(folder)/onward.ndjson", encoding: .utf8).split(separator: "\n")
    }
}
