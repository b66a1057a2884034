import AuditTrail
import CanonicalJSON
import GateRecords
import GateTestKit
import Testing

/// The handbook's page on the format of entries has every kind, and every member of each.
@Suite struct AuditFormatPageTests {
    private static let schema = EntrySchema.version1

    @Test func `the page has a row for each kind, with its members and which of them may be missing`() throws
    {
        let kinds = try HandbookTable(of: "AuditFormat", head: "| kind | recorded when | members |")
        #expect(Set(kinds.names(in: 0)) == Set(Self.schema.kindNames.map(\.text)))
        let inner = try HandbookTable(of: "AuditFormat", head: "| member | has |")
        for kind in Self.schema.kindNames {
            let row = try #require(kinds.rows.first { $0[0].contains("`\(kind.text)`") })
            for member in try #require(Self.schema.members(of: kind)).members {
                #expect(row[2].contains("`\(member.name)`"), "\(kind.text): \(member.name)")
                try Self.require(member, in: row[2], inner, "\(kind.text): \(member.name)")
            }
        }
    }

    /// What a member has of its own stands in the row of its kind, or in the row of its name.
    private static func require(
        _ member: ObjectShape.Member, in row: String, _ inner: HandbookTable, _ path: String
    ) throws {
        // The facts are described by the gateway's own schema.
        guard member.name != "facts", let object = object(in: member.shape) else { return }
        let told = inner.rows.first { $0[0].contains("`\(member.name)`") }?[1] ?? row
        for own in object.members {
            #expect(told.contains("`\(own.name)`"), "\(path)/\(own.name)")
            if told != row, own.name != "caller", own.name != "type" {
                #expect(told.contains("`\(own.name)`?") == !own.isRequired, "\(path)/\(own.name)")
            }
            try require(own, in: row, inner, "\(path)/\(own.name)")
        }
    }

    private static func object(in shape: Shape) -> ObjectShape? {
        switch shape {
        case .object(let object): object
        case .list(let element, _, _), .nullable(let element), .named(_, let element, _): object(in: element)
        default: nil
        }
    }
}
