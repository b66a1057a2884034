import Foundation
import GateTestKit
import GateVocabulary
import Testing

@testable import GateRecords

/// The handbook's page "Records" has the fields of every record, as the record declares them.
@Suite struct RecordPageTests {
    private static let lists: [(title: String, rows: [String])] = [
        ("A person", RecipientRecord.fields.table), ("A device", DeviceRecord.fields.table),
        ("A key of a device", DeviceKeyRecord.fields.table), ("An address", AddressRecord.fields.table),
        ("A consent", ConsentRecord.fields.table), ("A choice", PreferenceRecord.fields.table),
        ("A prompt", PermissionPrompt.fields.table), ("A drift", DriftFinding.fields.table),
        ("What a provider reports", ProviderSubscriptions.fields.table),
    ]

    /// `SENDGATE_RECORD_SCHEMAS=1` writes the tables anew.
    @Test func `the page has the fields of every record`() throws {
        let path = Repository.root + "/Sources/sendgate/Sendgate.docc/Records.md"
        let page = try String(contentsOfFile: path, encoding: .utf8)
        var sections = page.components(separatedBy: "\n## ")
        #expect(sections.dropFirst().map { String($0.prefix { $0 != "\n" }) } == Self.lists.map(\.title))
        let head = [Fields<DeviceRecord>.tableHead, "| --- | --- | --- | --- |"]
        for (place, list) in Self.lists.enumerated() where place + 1 < sections.count {
            let table = (head + list.rows).joined(separator: "\n")
            let lines = sections[place + 1].components(separatedBy: "\n")
            let prose = lines.prefix { !$0.hasPrefix("|") }.joined(separator: "\n")
            let section = "\(prose)\n\(table)\n"
            if ProcessInfo.processInfo.environment["SENDGATE_RECORD_SCHEMAS"] != nil {
                sections[place + 1] = section
            }
            #expect(
                sections[place + 1].trimmingCharacters(in: .newlines)
                    == section.trimmingCharacters(in: .newlines))
        }
        if ProcessInfo.processInfo.environment["SENDGATE_RECORD_SCHEMAS"] != nil {
            try sections.joined(separator: "\n## ").write(toFile: path, atomically: true, encoding: .utf8)
        }
    }
}

extension Fields {
    fileprivate static var tableHead: String { "| field | class | forms | meaning |" }

    fileprivate var table: [String] {
        all.map { field in
            let forms = [
                field.stored.map { _ in "row" },
                field.recorded.map { "\($0.name)" == "\(field.name)" ? "entry" : "entry as `\($0.name)`" },
                field.shown.map { _ in "answer" }, field.given.map { _ in "body" },
            ].compactMap(\.self)
            return
                "| `\(field.name)` | \(field.secrecy.rawValue) | \(forms.joined(separator: ", ")) | \(field.means) |"
        }
    }
}
