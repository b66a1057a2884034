import ArgumentParser
import BundleModel
import CanonicalJSON
import CommandTerminal
import CompliancePolicy
import GateVocabulary
import PolicyFiles
import PolicyProof

/// `sendgate policy diff`: what another bundle would decide otherwise, in words.
struct PolicyDiff: GateCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff",
        abstract: "Says what two bundles say and decide differently.",
        usage: "sendgate policy diff OLD NEW [--json]",
        discussion: """
            Both decide the same sends, from everything in favour to two circumstances against; a difference is told \
            with the fewest, and with the days it holds on where a row has not begun. After the decisions comes every value that was edited: texts, times to live, sending hours, \
            grants and notices too. Ends with 3 when there is any difference.
            """)

    static let example = "sendgate policy diff /srv/policies/2026-11 Policies"

    @Argument(help: ArgumentHelp("The bundle in force.", valueName: "old")) var old: String
    @Argument(help: ArgumentHelp("The bundle under review.", valueName: "new")) var new: String
    @OptionGroup var output: OutputOptions

    /// Lines on a page; JSON has all of them.
    private static let lineCountMax = 200

    func run() async throws {
        let difference = PolicyDifference(
            from: CompiledPolicy(try PolicyLoading.bundle(at: old)),
            to: CompiledPolicy(try PolicyLoading.bundle(at: new)))
        if output.json {
            Terminal.print([
                "changes": .array(difference.changes.map { .object($0.json) }),
                "decided": .integer(Int64(difference.stateCount)),
                "edited_notices": .array(difference.editedNotices.map { .object($0.json) }),
                "edits": .array(difference.edits.map { .object($0.json) }),
                "pages": .array(difference.pages.map { .string($0) }),
            ])
        } else {
            show(difference)
        }
        if !difference.edits.isEmpty { throw ExitStatus.foundDifference }
    }

    private func show(_ difference: PolicyDifference) {
        for change in difference.changes.prefix(Self.lineCountMax) {
            Terminal.print(Terminal.printable(change.sentence))
        }
        hide(difference.changes.count)
        for edit in difference.edits.prefix(Self.lineCountMax) {
            Terminal.print(Terminal.printable(edit.sentence))
        }
        hide(difference.edits.count)
        for problem in difference.editedNotices {
            Terminal.error(Terminal.printable(problem.placed(in: new)), hint: problem.hint)
        }
        func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
        let changes = counted(difference.changes.count, "difference")
        let decisions = counted(Int(difference.stateCount), "decision")
        Terminal.note(
            "\(changes) in \(decisions); \(counted(difference.edits.count, "edit")) on \(counted(difference.pages.count, "page"))"
        )
        if difference.changes.isEmpty, !difference.edits.isEmpty {
            Terminal.note("no decision on equal facts changes with them, whatever the day")
        }
    }

    private func hide(_ count: Int) {
        let hidden = count - Self.lineCountMax
        if hidden > 0 { Terminal.print("and \(hidden) more; --json has all of them") }
    }
}

extension PolicyEdit {
    fileprivate var json: JSONObject {
        var object: JSONObject = [
            "file": .string(file), "path": .array(path.map { .string($0) }), "sentence": .string(sentence),
        ]
        if let before { object["before"] = before }
        if let after { object["after"] = after }
        return object
    }
}

extension PolicyDifference.Change {
    var json: JSONObject {
        [
            "types": .array(types.map { .string($0.text) }),
            "channels": .array(channels.map { .string($0.rawValue) }),
            "callers": .array(callers.map { .string($0.text) }), "critical": .boolean(isCritical),
            "places": .array(places.map { .string($0) }),
            "circumstances": .array(circumstances.map { .string($0) }), "before": .object(before.json),
            "after": .object(after.json), "sentence": .string(sentence),
        ]
    }
}

extension PolicyDifference.Result {
    fileprivate var json: JSONObject {
        [
            "outcome": .string(outcome.name), "reason": .string(reason.rawValue),
            "form": .string(form.rawValue),
            "interruption": .string(interruption.rawValue),
        ]
    }
}
