import CanonicalJSON
import CommandTerminal
import Foundation
import WireProtocol

/// A program that stands in for Apple on the loopback and checks every rule of the wire.
///
/// Its first line on standard output is its port; then it answers each line of JSON on its standard input by one of its own.
final class DemoProvider {
    /// Has the keys and certificates that ``DemoTools/keys`` makes.
    let folder: String
    private(set) var port = ""
    private let process: Process
    private let commands: FileHandle
    private let answers: FileHandle
    private var read: [UInt8] = []

    init(_ tools: DemoTools, folder: String) throws {
        self.folder = folder
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let keys = try tools.process(tools.keys, [folder])
        keys.standardOutput = FileHandle.nullDevice
        try keys.run()
        keys.waitUntilExit()
        guard keys.terminationStatus == 0 else {
            throw CommandFailure(
                "the provider's keys could not be made",
                hint:
                    "`make demo` installs what `\(tools.provider)` needs; give the Python that has it with --python"
            )
        }
        let (input, output) = (Pipe(), Pipe())
        process = try tools.process(tools.provider, [folder])
        process.standardInput = input
        process.standardOutput = output
        (commands, answers) = (input.fileHandleForWriting, output.fileHandleForReading)
        try process.run()
        port = try line()
    }

    /// Tells the provider what to do with the next request.
    func answerNext(status: Int, _ body: JSONObject) throws {
        let text = String(decoding: CanonicalJSON.write(.object(body)), as: UTF8.self)
        try ask(["next": [["status": .integer(Int64(status)), "body": .string(text)]]])
    }

    /// The requests since the last such call.
    func requests() throws -> [JSONObject] {
        try ask(["log": true])["requests"]?.arrayValue?.compactMap(\.objectValue) ?? []
    }

    func stop() {
        // The end of its input is the end of it.
        try? commands.close()
        process.waitUntilExit()
    }

    @discardableResult
    private func ask(_ command: JSONObject) throws -> JSONValue {
        try commands.write(contentsOf: CanonicalJSON.write(.object(command)) + [UInt8(ascii: "\n")])
        return try CanonicalJSON.read(Array(line().utf8), limits: .document)
    }

    private func line() throws -> String {
        while true {
            if let end = read.firstIndex(of: UInt8(ascii: "\n")) {
                defer { read.removeSubrange(...end) }
                return String(decoding: read[..<end], as: UTF8.self)
            }
            let more = answers.availableData
            guard !more.isEmpty else { throw CommandFailure("the provider's stand-in has ended") }
            read += more
        }
    }
}

/// Programs besides this binary that the demo shows a delivery with.
package struct DemoTools {
    /// `sendgate-courier`.
    package var courier: String
    /// The program that stands in for Apple.
    package var provider: String
    /// The Python interpreter that runs the stand-in.
    package var python: String

    package init(courier: String, provider: String, python: String) {
        self.courier = courier
        self.provider = provider
        self.python = python
    }

    /// Makes the keys of the stand-in, beside it.
    var keys: String {
        URL(filePath: provider).deletingLastPathComponent().appending(path: "push_keys.py").path
    }

    func process(_ script: String, _ arguments: [String]) throws -> Process {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [python, script] + arguments
        return process
    }
}
