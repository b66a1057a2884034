import GateSteps
import GateVocabulary
import GatewayPipeline
import Testing

@Suite struct DutyPromises {
    @Test(arguments: StoreUnderTest.all)
    func `a duty is what was put last, until it or its send is removed`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let subject = try opened.write { try $0.register("u_1", 1) }
        try opened.write { (transaction) throws in
            transaction.putDuty(.sample(1, subject: subject))
            transaction.putDuty(.sample(2, subject: subject, state: .discharged))
        }
        try opened.read { (store) throws in
            #expect(try store.duty(.sample(1), of: subject) == .sample(1, subject: subject))
            #expect(
                try store.duty(.sample(2), of: subject) == .sample(2, subject: subject, state: .discharged))
            #expect(try store.duty(.sample(3), of: subject) == nil)
            #expect(try store.duty(.sample(1), of: .sample(2)) == nil)
        }
        try opened.write { (transaction) throws in
            transaction.putDuty(.sample(1, subject: subject, state: .discharged))
            transaction.removeDuty(.sample(2), of: subject)
        }
        try opened.read { (store) throws in
            #expect(try store.duty(.sample(1), of: subject)?.state == .discharged)
            #expect(try store.duty(.sample(2), of: subject) == nil)
        }
        try opened.write { $0.removeDuties(of: .sample(1), to: subject) }
        #expect(try opened.read { try $0.duty(.sample(1), of: subject) } == nil)
    }

    @Test(arguments: StoreUnderTest.all)
    func `what is overdue comes longest first, and no more than asked for`(_ kind: StoreUnderTest) throws {
        let opened = try OpenStore(kind)
        let subject = try opened.write { try $0.register("u_1", 1) }
        try opened.write { (transaction) throws in
            for number in 1...5 {
                transaction.putDuty(
                    .sample(number, subject: subject, dueAt: .sample(Int64(10 - number))))
            }
        }
        try opened.read { (store) throws in
            func overdue(_ seconds: Int64, _ limit: Int) throws -> [GateVocabulary.Tag] {
                try store.overdueDuties(at: .sample(seconds), limit: limit).map(\.duty)
            }
            #expect(try overdue(4, 9) == [])
            #expect(try overdue(7, 9) == [.sample(5), .sample(4), .sample(3)])
            #expect(try overdue(9, 2) == [.sample(5), .sample(4)])
        }
    }
}
