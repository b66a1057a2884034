import BundleModel
import CompliancePolicy
import Foundation
import GateSteps
import GatewayPipeline
import PolicyFiles
import Testing

@testable import sendgate

/// One wrong edit of the repository's bundle, and what `policy check` must say about it.
struct BadEdit: Sendable, CustomTestStringConvertible {
    var name: String
    var file: String
    /// `nil` adds a file.
    var old: String?
    var new: String
    /// What of the new text stands on the line that is wrong.
    var wrong: String
    var message: String
    var hint: String

    var testDescription: String { name }
}

extension BadEdit {
    private static let type = "Policies/types/zz.new.yaml"

    /// A type page that passes, with one line of it replaced.
    private static func page(_ old: String = "", _ new: String = "") -> String {
        let page = """
            type: zz.new
            means: Somebody sent money to the recipient.
            source: S2
            category: transactional
            tier: important
            sensitivity: high
            not_marketing_because: Names no offer.
            basis: {gdpr: Art. 6(1)(b), uk_gdpr: Art. 6(1)(b), gdpr_like: contract, other: contract}
            channels:
              push: {body: sealed, without_key: generic}
            params: {amount: money}
            ttl: {hours: 24, counts_from: due}
            deep_link: drop://activity
            android_channel: transactional

            """
        return old.isEmpty ? page : page.replacing(old, with: new)
    }

    static let passing = page()

    private static let mandatory = """
        mandatory:
          law: []
          passes: [preferences]
          must_reach_within: a day
          if_unreachable: letter
          discharged_by: [letter]
          discharge_within: {hours: 24}
          review: "2027-01-02"
        basis:
        """

    private static let bomb =
        "a: &a [x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nd: [*c, *c, *c, *c]\n"

    static let all: [BadEdit] = [
        BadEdit(
            name: "a YAML bomb", file: type, new: bomb, wrong: "a: &a",
            message: "has an anchor, and a page says everything where it stands",
            hint: "write the value out, or put it between double quotes if `&` or `*` is meant"),
        BadEdit(
            name: "an anchor", file: type, new: page("category: tr", "category: &c tr"), wrong: "&c",
            message: "has an anchor, and a page says everything where it stands",
            hint: "write the value out, or put it between double quotes if `&` or `*` is meant"),
        BadEdit(
            name: "an alias", file: type, new: page("source: S2", "source: *s"), wrong: "*s",
            message: "has an alias, and a page says everything where it stands",
            hint: "write the value out, or put it between double quotes if `&` or `*` is meant"),
        BadEdit(
            name: "a key that stands twice", file: type, new: page("tier:", "category: security\ntier:"),
            wrong: "category: security", message: "has the key `category` twice, first in line 4",
            hint: "keep one; readers of YAML disagree about which one counts"),
        BadEdit(
            name: "NO without quotes", file: "Policies/regions.yaml", old: "\"NO\":", new: "NO:",
            wrong: "NO:", message: "the key `NO` is true or false to some readers of YAML",
            hint: "put it between double quotes, \"NO\", or write true or false"),
        BadEdit(
            name: "21:00 without quotes", file: "Policies/channels.yaml", old: "latest: \"21:00\"",
            new: "latest: 21:00", wrong: "latest: 21:00",
            message: "`21:00` is a number to base 60 to some readers of YAML",
            hint: "put it between double quotes, \"21:00\""),
        BadEdit(
            name: "a type that says it is another", file: type,
            new: page("type: zz.new", "type: transaction.failed"), wrong: "type: transaction.failed",
            message:
                "`type` is `transaction.failed`, and the file says `zz.new`; types/transaction.failed.yaml is that type already",
            hint: "one type would shadow the other; name this one `zz.new`"),
        BadEdit(
            name: "a type that differs from another by case", file: "Policies/types/Transaction.failed.yaml",
            new: page("type: zz.new", "type: Transaction.failed"), wrong: "type: Transaction.failed",
            message: "`type` is `Transaction.failed`",
            hint: "lower-case letters, digits, `_` and `.`, at most 128, so that no two differ by case alone"),
        BadEdit(
            name: "a variant of itself", file: type, new: page("tier:", "sub_of: zz.new\ntier:"),
            wrong: "sub_of:", message: "`sub_of` is `zz.new`, which is no other type of the registry",
            hint: "name a broader type that has a file, or remove the line"),
        BadEdit(
            name: "an unknown category", file: type, new: page("category: transactional", "category: fun"),
            wrong: "category: fun",
            message:
                "`category` must be one of `transactional`, `security`, `social`, `marketing`, and is `fun`",
            hint: "the list is closed; write one of them"),
        BadEdit(
            name: "a misspelled category", file: type,
            new: page("category: transactional", "category: transactionel"), wrong: "category:",
            message:
                "`category` must be one of `transactional`, `security`, `social`, `marketing`, and is `transactionel`",
            hint: "did you mean `transactional`?"),
        BadEdit(
            name: "a cap of nothing", file: "Policies/limits.yaml",
            old: "\ntypes:\n", new: "\ntypes:\n  zz.new: [{count: 0, window_hours: 24, source: S0}]\n",
            wrong: "zz.new: [{count: 0", message: "`types.zz.new.0.count` must be 1 to 1000000, and is 0",
            hint: "a cap lets something through; to let nothing through, disable the type"),
        BadEdit(
            name: "a zone that does not exist", file: "Policies/channels.yaml", old: "America/Denver",
            new: "America/Denvr", wrong: "America/Denvr",
            message:
                "`sms.hours.zones` names `America/Denvr`, which is no zone of tzdata \(LocalTime.dataVersion)",
            hint: "write an IANA zone such as America/New_York"),
        BadEdit(
            name: "a text with a param the type lacks", file: "Policies/messages/en.yaml",
            old: "\nzz.new:\n  title: Money\n  body: You got {amount}.",
            new: "\nzz.new:\n  title: Money\n  body: You got {amuont}.", wrong: "{amuont}",
            message: "`zz.new.body` names {amuont}, which is no param of `zz.new`",
            hint: "its params: amount"),
        BadEdit(
            name: "a type nobody can say in the last language", file: "Policies/messages/en.yaml",
            old: "\nzz.new:\n  title: Money\n  body: You got {amount}.", new: "", wrong: "",
            message: "lacks texts for `zz.new`, which types/zz.new.yaml needs",
            hint: "every chain of locales ends here"),
        BadEdit(
            name: "a reason without a sentence in Norwegian", file: "Policies/reasons/nb.yaml",
            old: "    sentence: \"Avsenderen oppga en type varsel som ikke er registrert.\"\n", new: "",
            wrong: "  unknown_type:", message: "`reasons.unknown_type` lacks `sentence`",
            hint: "in English: The sender named a kind of notification that is not registered."),
        BadEdit(
            name: "a sentence without its moment", file: "Policies/reasons/nb.yaml",
            old: "Det venter[ for `{place}`] til {moment}.", new: "Det venter[ for `{place}`].",
            wrong: "waiting:", message: "`waiting` must have the values of the English sentence",
            hint: "which is: It waits[ for `{place}`] until {moment}."),
        BadEdit(
            name: "a sentence with a bracket open", file: "Policies/reasons/nb.yaml",
            old: "Det venter[ for `{place}`] til", new: "Det venter[ for `{place}` til", wrong: "waiting:",
            message: "`waiting` has a bracket without its partner, or one inside another",
            hint: "values are {place}, {moment}"),
        BadEdit(
            name: "a year of eleven months", file: "Policies/reasons/nb.yaml", old: "januar, ", new: "",
            wrong: "months:", message: "`months` must be the twelve months of a date, and there are 11",
            hint: "from January to December"),
        BadEdit(
            name: "marketing by duty", file: type,
            new: page("category: transactional", "category: marketing")
                .replacing("basis:", with: mandatory)
                .replacing("law: []", with: "law: [PSD2 Art. 79(1)]")
                .replacing("not_marketing_because: Names no offer.\n", with: ""),
            wrong: "mandatory:", message: "`mandatory` is said of a `marketing` type",
            hint: "no law obliges us to send marketing, and a duty must not carry any"),
        BadEdit(
            name: "a duty without a law", file: type, new: page("basis:", mandatory), wrong: "law: []",
            message: "`mandatory.law` cites no law",
            hint: "name the article that obliges us, or remove `mandatory`"),
    ]
}

@Suite struct BadBundleTests {
    private let folder: TemporaryFolder
    private let policies: String

    /// The repository's bundle and one type more, `zz.new`, which nothing else mentions.
    init() throws {
        folder = try TemporaryFolder()
        policies = try folder.policies()
        _ = try folder.file("Policies/types/zz.new.yaml", BadEdit.passing)
        let cover = try String(contentsOfFile: "\(policies)/bundle.yaml", encoding: .utf8)
        _ = try folder.file("Policies/bundle.yaml", cover + "  - types/zz.new.yaml\n")
        let english = try String(contentsOfFile: "\(policies)/messages/en.yaml", encoding: .utf8)
        _ = try folder.file(
            "Policies/messages/en.yaml", english + "\nzz.new:\n  title: Money\n  body: You got {amount}.\n")
    }

    private func diagnostics() throws -> [PolicyDiagnostic] {
        do throws(PolicyDiagnostics) {
            _ = try PolicyLoading.bundle(at: policies)
            return []
        } catch {
            return error.diagnostics
        }
    }

    private func make(_ edit: BadEdit) throws {
        if let old = edit.old {
            try folder.edit(edit.file, old, edit.new)
        } else {
            if !FileManager.default.fileExists(atPath: folder.path(edit.file)) {
                let name = edit.file.replacing("Policies/", with: "")
                try folder.edit(
                    "Policies/bundle.yaml", "  - types/zz.new.yaml\n", "  - types/zz.new.yaml\n  - \(name)\n")
            }
            _ = try folder.file(edit.file, edit.new)
        }
    }

    @Test func `the bundle these edits are made to passes`() throws {
        #expect(try diagnostics() == [])
    }

    @Test(arguments: BadEdit.all)
    func `a wrong edit is told with its line and what to do`(edit: BadEdit) throws {
        try make(edit)
        let file = edit.file.replacing("Policies/", with: "")
        let text = try String(contentsOfFile: folder.path(edit.file), encoding: .utf8)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let line = edit.wrong.isEmpty ? nil : lines.lastIndex { $0.contains(edit.wrong) }.map { $0 + 1 }
        let found = try diagnostics()
        let diagnostic = try #require(
            found.first { $0.file == file && $0.message == edit.message }, "\(found)")
        #expect(diagnostic.line == line)
        #expect(diagnostic.hint?.hasPrefix(edit.hint) == true, "\(diagnostic.hint ?? "no hint")")
    }

    @Test func `two types that are variants of each other are told both`() throws {
        try folder.edit("Policies/types/zz.new.yaml", "tier:", "sub_of: transfer.received\ntier:")
        try folder.edit("Policies/types/transfer.received.yaml", "tier:", "sub_of: zz.new\ntier:")
        let found = try diagnostics()
        #expect(found.map(\.file) == ["types/transfer.received.yaml", "types/zz.new.yaml"])
        for diagnostic in found {
            #expect(diagnostic.message.contains("which is in the end a variant of"))
            #expect(diagnostic.line != nil)
            #expect(diagnostic.hint != nil)
        }
    }

    @Test func `everything wrong is told at once, whatever page it stands on`() async throws {
        // Three pages that cannot be read at all, and three that can and are wrong.
        try folder.edit("Policies/regions.yaml", "\"NO\":", "NO:")
        try folder.edit("Policies/channels.yaml", "latest: \"21:00\"", "latest: 21:00")
        try folder.edit("Policies/messages/nb.yaml", "generic:", "generic: &all")
        try folder.edit("Policies/types/zz.new.yaml", "category: transactional", "category: fun")
        try folder.edit("Policies/critical.yaml", "allow:", "alow:")
        try folder.edit(
            "Policies/limits.yaml", "\ntypes:\n",
            "\ntypes:\n  zz.new: [{count: 0, window_hours: 24, source: S0}]\n")
        try FileManager.default.createSymbolicLink(
            atPath: "\(policies)/types/linked.yaml", withDestinationPath: "/etc/passwd")
        try Data(repeating: UInt8(ascii: "#"), count: 300_000).write(
            to: URL(filePath: "\(policies)/types/zz.huge.yaml"))
        let files = Set(try diagnostics().map(\.file))
        #expect(
            files == [
                "channels.yaml", "critical.yaml", "limits.yaml", "messages/nb.yaml", "regions.yaml",
                "types/linked.yaml", "types/zz.huge.yaml", "types/zz.new.yaml",
            ])
        let run = try await CommandLineRun("policy", "check", policies)
        #expect(run.status == 1)
        for file in files { #expect(run.errors.contains("sendgate: error: \(policies)/\(file):")) }
    }

    @Test func `what hangs on a page that cannot be read is not told as a second problem`() throws {
        // Callers, the critical list, limits, texts and cases all name this type.
        try folder.edit("Policies/types/security.new_login.yaml", "category:", "category: &c")
        try folder.edit("Policies/messages/en.yaml", "generic:", "generic: &all")
        #expect(
            Set(try diagnostics().map(\.file)) == ["messages/en.yaml", "types/security.new_login.yaml"])
    }

    @Test func `a language that borrows texts is a remark, with whose text is read`() async throws {
        #expect(try PolicyLoading.bundle(at: policies).remarks.first { $0.file == "messages/nb.yaml" } != nil)
        let run = try await CommandLineRun("policy", "check", policies)
        #expect(run.status == 0)
        #expect(run.errors.contains("messages/nb.yaml: lacks texts for 1 of"))
        #expect(run.errors.contains("whose readers get `en`: `zz.new`"))
        let json = try await CommandLineRun("policy", "check", policies, "--json")
        #expect(json.output.contains("\"remarks\":[{"))
    }

    /// Some seconds of work. A reader whose time grew with the square of the types would take hours.
    @Test func `ten thousand types are a bundle, and twenty thousand files are none`() throws {
        let names = (0..<10_000).map { "zz.type_\($0)" }
        for name in names {
            try Data(BadEdit.passing.replacing("type: zz.new", with: "type: \(name)").utf8)
                .write(to: URL(filePath: "\(policies)/types/\(name).yaml"))
        }
        func append(_ file: String, _ lines: [String]) throws {
            let text = try String(contentsOfFile: "\(policies)/\(file)", encoding: .utf8)
            _ = try folder.file("Policies/\(file)", text + lines.joined(separator: "\n") + "\n")
        }
        try append("bundle.yaml", names.map { "  - types/\($0).yaml" })
        try append("messages/en.yaml", names.map { "\($0): {title: Money, body: \"You got {amount}.\"}" })
        #expect(try PolicyLoading.bundle(at: policies).types.count > 10_000)

        for number in 0..<10_000 {
            try Data().write(to: URL(filePath: "\(policies)/types/more_\(number).yaml"))
        }
        let found = try diagnostics()
        #expect(found.map(\.message) == ["lies in a folder of more than 20000 files"])
    }
}
