import BundleModel
import CanonicalJSON
import GateSteps
import GateTestKit
import GateVocabulary
import GateRecords
import SealedFormat
import Testing
import WireProtocol

/// Tables of the handbook whose rows stand for what the code declares have a row for each, and no other.
@Suite struct HandbookTableTests {
    private static func drift() throws -> HandbookTable {
        try HandbookTable(of: "Drift", head: "| finding | what disagrees | action | what is done |")
    }

    @Test func `the page on drift has every finding, and every action but the one that ends a finding`()
        throws
    {
        let table = try Self.drift()
        var kinds: [String] = []
        for name in table.names(in: 0) where kinds.last != name { kinds.append(name) }
        #expect(kinds == DriftKind.allCases.map(\.rawValue))
        let actions = DriftAction.allCases.filter { $0 != .resolved }.map(\.rawValue)
        #expect(Set(table.names(in: 2)) == Set(actions))
    }

    @Test func `app teams are told what to do about every finding that is only marked`() throws {
        let marked = try Self.drift().rows.filter { $0[2] == "`\(DriftAction.marked.rawValue)`" }.map {
            $0[0]
        }
        let told = try HandbookTable(of: "ForApps", head: "| finding | what the app does |").names(in: 0)
        #expect(Set(told.map { "`\($0)`" }) == Set(marked))
        #expect(told.count == marked.count)
    }

    @Test func `the page on replies has every member of the body`() throws {
        let members = try #require(ReplyBody.example.objectValue).members.map(\.key)
        #expect(
            try HandbookTable(of: "Replies", head: "| member | is |").names(in: 0)
                .sorted() == members.sorted())
    }

    @Test func `the page on consent has every act, and every reason why nothing changes`() throws {
        let acts = try HandbookTable(of: "ConsentAndPreferences", head: "| act | request |").names(in: 0)
        #expect(Set(acts) == Set(PersonAct.allCases.map(\.rawValue)))
        #expect(acts.count == PersonAct.allCases.count)

        let why = try HandbookTable(of: "ConsentAndPreferences", head: "| `why` | meaning |")
        #expect(why.names(in: 0) == NoEffect.allCases.map(\.rawValue))
        for row in why.rows {
            let isDeclared = NoEffect.means.split(separator: "\n").contains { line in
                guard line.hasPrefix("- \(row[0]): ") else { return false }
                return row[1].hasPrefix(line.dropFirst("- \(row[0]): ".count))
            }
            #expect(isDeclared, "\(row)")
        }
    }

    @Test func `app teams are told every event of a receipt, and every member that the origin key signs`()
        throws
    {
        let events = try HandbookTable(of: "ForApps", head: "| `event` | `action` | when |").names(in: 0)
        #expect(Set(events) == Set(ReceiptBody.Event.allCases.map(\.rawValue)))

        let signed = try HandbookTable(
            of: "ForApps", head: "| name | Android: in `data` | iPhone | as text |")
        #expect(signed.names(in: 0) == OpenPushMember.allCases.map(\.rawValue))
    }

    @Test func `operators are told who signs a bundle, and how each key is replaced`() throws {
        let roles = try HandbookTable(of: "Running", head: "| role | signs | has to sign again |").names(
            in: 0)
        #expect(roles == ApprovalRole.allCases.map(\.rawValue))

        // The index key is never replaced, and a root key has a section of its own.
        let keys = try HandbookTable(
            of: "Running", head: "| key | before it is promoted | what the old one is needed for |")
        #expect(
            Set(keys.rows.map { $0[0] })
                == Set(KeyPurpose.ofGateway.filter { $0 != .index && $0 != .root }.map { "`\($0.rawValue)`" })
        )
    }

    @Test func `the bytes of an unsubscribe token add up to its length`() throws {
        let table = try HandbookTable(of: "Unsubscribing", head: "| bytes | what |")
        #expect(table.rows.compactMap { Int($0[0]) }.reduce(0, +) == UnsubscribeToken.byteCount)
        #expect(table.rows.first == ["1", "version, \(UnsubscribeToken.version)"])
    }
}
