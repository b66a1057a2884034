import Foundation
import Testing

extension EndToEnd {
    /// The handbook's commands and programs, run as they stand in it.
    @Suite struct HandbookTests {
        /// Programs by which the pages are run, and the Debian package each comes with.
        @Test(arguments: [
            ("bash", "bash"), ("curl", "curl"), ("jq", "jq"), ("python3", "python3"), ("node", "nodejs"),
            ("go", "golang-go"), ("openssl", "openssl"),
        ])
        func `what the pages are run with is there`(program: String, package: String) throws {
            let finished = try Finished.run(
                ["/bin/bash", "-c", "command -v \(program)"], environment: Machine.commands, in: Scratch(),
                within: 10)
            #expect(
                finished.ending == .exit(0),
                "`\(program)` is missing: `make test` installs it, as `apt-get install \(package)` does")
        }

        @Test(arguments: [
            ("FirstSend", 8), ("ForApps", 8), ("MovingHere", 8), ("Importing", 6), ("Runbook", 8),
            ("Drift", 5), ("Replies", 4),
            ("DeliveryLayer", 4), ("Expo", 2),
        ])
        func `a page's commands run as written and print what it says`(name: String, stepCountMin: Int)
            throws
        {
            let page = try HandbookPage(name)
            let (steps, printed, finished) = try page.run(in: Scratch())
            #expect(steps.count >= stepCountMin, "\(name).md has only \(steps.count) commands")
            #expect(finished.ending == .exit(0), "\(finished.errors)")
            // What is printed after the last mark belongs to no command.
            #expect(printed.count == steps.count + 1 && printed.last == "", "\(finished.errors)")
            for (step, output) in zip(steps, printed) {
                #expect(output == step.expected ?? "", "\(step.command)\n\(finished.errors)")
            }
        }

        @Test
        func
            `a first push goes by the page's commands to a provider that checks every rule, and a dead token is cleared`()
            throws
        {
            let scratch = try Scratch()
            let (folder, peers) = (
                scratch.path("apple"), "\(Machine.repository)/Tests/CourierProvidersTests/peers"
            )
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            let made = try Finished.run(
                [Machine.python, "\(peers)/push_keys.py", folder], in: scratch, within: 60)
            try #require(made.ending == .exit(0), "\(made.errors)")
            let apple = try ChildProcess(
                [Machine.python, "\(peers)/push_service.py", folder], errorPath: scratch.path("apple.stderr"))
            let port = try apple.readLine(within: 30)
            // The courier's look at the provider, the first push, and one to a phone that the app was removed from.
            let goneAt = Int(Date().timeIntervalSince1970 * 1_000) + 600_000
            try apple.write(
                line: #"""
                    {"next": [{"status": 400, "body": "{\"reason\": \"BadDeviceToken\"}"}, {"status": 200, "body": ""}, \#
                    {"status": 410, "body": "{\"reason\": \"Unregistered\", \"timestamp\": \#(goneAt)}"}]}
                    """#)
            _ = try apple.readLine(within: 30)
            let page = try HandbookPage("FirstPush")
            let (steps, printed, finished) = try page.run(
                in: scratch,
                replacing: [
                    ("AuthKey_ABC123DEFG.p8", "\(folder)/apns.p8"), ("ABC123DEFG", "KEYIDKEYID"),
                    ("DEF123GHIJ", "TEAMIDTEAM"),
                    (
                        "environment: sandbox",
                        "environment: sandbox\n      trust: \(folder)/ca.pem\n      endpoint: localhost:\(port)"
                    ),
                ])
            #expect(steps.count >= 6 && printed.count == steps.count + 1, "\(finished.errors)")
            #expect(finished.ending == .exit(0) && printed.last == "", "\(finished.errors)")
            for (step, output) in zip(steps, printed) {
                #expect(output == step.expected ?? "", "\(step.command)\n\(finished.errors)")
            }
            try apple.write(line: #"{"log": true}"#)
            let log = try apple.readLine(within: 30)
            #expect(log.matches(of: /"broken": null/).count >= 2, "\(log)")
        }

        @Test func `the Swift program of the page is the one that is built`() throws {
            let built = try String(
                contentsOfFile: "\(Machine.repository)/Tests/FirstSend/main.swift", encoding: .utf8)
            #expect(try HandbookPage("FirstSend").program("main.swift") == built)
        }

        /// One of the five programs: how it is made ready in a folder, and how it is started there.
        struct Producer: Sendable, CustomTestStringConvertible {
            var file: String
            var command: [String]
            /// The client that the program stands on, which is a file of its own.
            var client: String?
            var preparation: [String] = []
            var testDescription: String { file }

            static let all = [
                Producer(file: "first_send.sh", command: ["bash", "first_send.sh"]),
                Producer(
                    file: "first_send.py", command: ["python3", "first_send.py"],
                    client: "sendgate_client.py"),
                Producer(
                    file: "first_send.mjs", command: ["node", "first_send.mjs"],
                    client: "sendgate_client.mjs"),
                Producer(
                    file: "first_send.go", command: ["./first_send"], client: "sendgate_client.go",
                    preparation: [
                        "go", "build", "-o", "first_send", "first_send.go", "sendgate_client.go",
                    ]),
                Producer(file: "main.swift", command: ["FirstSend"]),
            ]
        }

        /// The gateway of one test, with a socket before it that fails in a given way.
        struct Stage {
            let scratch: Scratch
            let gate: GateProcess
            let producer: Producer

            init(_ producer: Producer) throws {
                scratch = try Scratch()
                gate = GateProcess(in: scratch)
                self.producer = producer
                for file in [producer.file, producer.client].compactMap({ $0 }) {
                    try scratch.write(file, HandbookPage("FirstSend").program(file))
                }
                try gate.start()
                try gate.registerSomebody()
                if !producer.preparation.isEmpty {
                    let prepared = try shell(producer.preparation)
                    #expect(prepared.ending == .exit(0), "\(prepared.errors)")
                }
            }

            private func start(_ command: [String]) throws -> ChildProcess {
                try ChildProcess(
                    ["/bin/bash", "-c", "cd '\(scratch.folder)' && exec \"$@\"", "-"] + command,
                    environment: Machine.commands,
                    errorPath: scratch.path("stderr-\(UUID().uuidString.prefix(8))"))
            }

            private func end(_ child: ChildProcess) throws -> Finished {
                let output = try child.readToEnd(within: 120)
                return Finished(
                    ending: try child.waitForEnd(within: 120), output: output, errors: child.errors)
            }

            private func shell(_ command: [String]) throws -> Finished { try end(start(command)) }

            /// Runs the program against the gateway itself.
            func run(_ socket: String, id: String, user: String = "u_1") throws -> Finished {
                try shell(producer.command + [socket, id, user])
            }

            struct Request: Decodable, Equatable {
                var step: String
                var at: Double
                var body: String
            }

            /// A socket that takes some steps, and the program where it was started behind it.
            struct Stumbling {
                var socket, record: String
                var gate: ChildProcess
                var program: ChildProcess?

                /// Ends the socket and tells what was asked there.
                func requests() throws -> [Request] {
                    gate.kill()
                    return try String(contentsOfFile: record, encoding: .utf8).split(separator: "\n")
                        .map { try JSONDecoder().decode(Request.self, from: Data($0.utf8)) }
                }
            }

            private func stumble(_ steps: [String]) throws -> Stumbling {
                let name = UUID().uuidString.prefix(8)
                let (socket, record) = (scratch.path("\(name).sock"), scratch.path("\(name).requests"))
                let stumbling = try ChildProcess(
                    [
                        Machine.python, Machine.peer("stumbling_gate.py"), socket,
                        gate.socket(of: "payments"),
                        record,
                    ] + steps, errorPath: scratch.path("\(name).stderr"))
                let ready = try stumbling.readLine(within: 30)
                #expect(ready == "ready")
                return Stumbling(socket: socket, record: record, gate: stumbling)
            }

            /// Runs the program once for each id behind a socket that takes these steps.
            func run(behind steps: [String], _ sends: [(id: String, user: String)]) throws
                -> (finished: [Finished], requests: [Request])
            {
                let stumbling = try stumble(steps)
                let finished = try sends.map { try run(stumbling.socket, id: $0.id, user: $0.user) }
                return (finished, try stumbling.requests())
            }

            /// Starts the program behind a socket that takes these steps, and does not wait for it.
            func begin(behind steps: [String], id: String) throws -> Stumbling {
                var stumbling = try stumble(steps)
                stumbling.program = try start(producer.command + [stumbling.socket, id, "u_1"])
                return stumbling
            }

            func end(_ stumbling: Stumbling) throws -> (finished: Finished, requests: [Request]) {
                let finished = try end(try #require(stumbling.program))
                return (finished, try stumbling.requests())
            }
        }

        @Test(arguments: Producer.all)
        func `a program repeats what may have failed with the same id, and nothing else`(producer: Producer)
            throws
        {
            let stage = try Stage(producer)
            // What never gets well is waited for beside all else.
            let hopeless = try stage.begin(behind: ["503"], id: "p-3")

            // When the connection breaks, there is too much to do and the gateway cannot record, and then all is well.
            let patient = try stage.run(
                behind: ["drop", "429", "503", "pass"], [(id: "p-1", user: "u_1")])
            #expect(patient.finished[0].ending == .exit(0), "\(patient.finished)")
            #expect(patient.finished[0].output == "forward: generic_only (no_key)\n")
            #expect(patient.requests.map(\.step) == ["drop", "429", "503", "pass"])
            #expect(Set(patient.requests.map(\.body)).count == 1, "an attempt had another content")
            #expect(
                patient.requests[2].at - patient.requests[1].at >= 1, "`Retry-After: 1` was not waited for")

            // When the gateway took it and the answer was lost.
            let lost = try stage.run(behind: ["lose", "pass"], [(id: "p-2", user: "u_1")])
            #expect(
                lost.finished[0].ending == .exit(0)
                    && lost.finished[0].output == "forward: generic_only (no_key)\n")
            #expect(lost.requests.map(\.step) == ["lose", "pass"])
            #expect(Set(lost.requests.map(\.body)).count == 1)

            // When nobody is there.
            let nobody = try stage.run(stage.scratch.path("nobody.sock"), id: "p-4")
            #expect(nobody.ending == .exit(75) && nobody.output.isEmpty)
            #expect(nobody.errors.contains(" at \(stage.scratch.path("nobody.sock")): "), "\(nobody)")
            #expect(nobody.errors.contains("may this user enter the folder?"), "\(nobody)")

            // When the answer is final, it is asked once.
            let final = try stage.run(
                behind: ["pass"],
                [
                    (id: "p-5", user: "stranger"), (id: ".", user: "u_1"), (id: "p-1", user: "u_2"),
                    (id: "p-1", user: "u_1"),
                ])
            #expect(final.requests.count == 4)
            #expect(final.finished.map(\.ending) == [.exit(2), .exit(1), .exit(1), .exit(0)])
            #expect(final.finished[0].output == "reject: unknown_recipient\n")
            #expect(final.finished[1].errors.contains("422 "))
            #expect(final.finished[1].errors.contains("  /id: "), "\(final.finished[1])")
            #expect(final.finished[2].errors.contains("409 "))
            #expect(final.finished[3].output == "forward: generic_only (no_key)\n")

            // When it never gets well.
            let given = try stage.end(hopeless)
            #expect(given.finished.ending == .exit(75) && given.finished.output.isEmpty)
            #expect(given.finished.errors.contains("with the id p-3"), "\(given.finished)")
            // The kept clients end by time: five seconds here, with waits that double.
            #expect((2...30).contains(given.requests.count) && Set(given.requests.map(\.body)).count == 1)
        }
    }
}
