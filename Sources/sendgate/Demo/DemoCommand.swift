import ArgumentParser
import Foundation

/// `sendgate demo`: the whole gate in under a minute, with real processes.
struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tells the gate's story in a terminal, with real processes.",
        usage: "sendgate demo [--policies DIR] [--keep]",
        discussion: """
            Starts a gateway, a delivery layer on its socket, an iPhone and an Android phone, and a marketing, \
            a payments, a security and an app-backend caller on sockets of their own; everything lives in a \
            temporary folder and is gone afterwards.

            Example: sendgate demo
            """,
        subcommands: [DemoDelivery.self])

    @Option(help: "The bundle to decide by.")
    var policies = "Policies"

    @Flag(help: "Leave the folder behind and say where it is.")
    var keep = false

    func run() async throws {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "sendgate-demo-\(ProcessInfo.processInfo.processIdentifier)").path
        let stage = try DemoStage(folder: folder, policies: policies)
        defer {
            stage.strike()
            if keep {
                Terminal.note("the folder is still there: \(folder)")
            } else {
                try? FileManager.default.removeItem(atPath: folder)
            }
        }
        let story = DemoStory(stage: stage)
        try await story.tell()
        if story.failureCount > 0 {
            throw CommandFailure("\(story.failureCount) scenes did not end as they should have")
        }
    }
}
