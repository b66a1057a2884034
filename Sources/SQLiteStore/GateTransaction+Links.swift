import GateSteps
import GateVocabulary
import GatewayPipeline

extension GateReading {
    private static let link = StatementText(
        "unsubscribe_link",
        """
        SELECT l.id, l.person, l.category, l.channel, l.destination, l.mailbox, p.subject
        FROM unsubscribe_link AS l LEFT JOIN person AS p ON p.number = l.person WHERE l.id = ?
        """)

    final func unsubscribeLink(_ id: Tag) throws -> UnsubscribeLink? {
        let link = try gate.first(Self.link, { $0.add(id) }) { row in
            _ = row.byteArray()
            let person = row.integer()
            guard let category = Category(code: row.integer()), let channel = Channel(code: row.integer())
            else { throw StoreError.damaged(table: "unsubscribe_link", "a link has an unknown category") }
            let destination: Tag = try row.id()
            let mailbox = row.optionalByteArray()
            let subject: SubjectID = try DamageLog.placing("person", row: "\(person)") { try row.id() }
            return UnsubscribeLink(
                id: id, subject: subject, category: category, channel: channel, destination: destination,
                mailbox: mailbox)
        }
        if link == nil { try damages.refuseMiss(in: "unsubscribe_link") }
        return link
    }
}

extension GateTransaction {
    // Nearly every one is there already.
    private static let insertLink = StatementText(
        "unsubscribe_link", "INSERT OR IGNORE INTO unsubscribe_link VALUES (?, ?, ?, ?, ?, ?)")

    func putUnsubscribeLink(_ link: UnsubscribeLink) throws {
        let person = try makePerson(link.subject)
        try gate.change(Self.insertLink) {
            $0.add(link.id)
            $0.add(person)
            $0.add(link.category)
            $0.add(link.channel)
            $0.add(link.destination)
            $0.add(link.mailbox)
        }
    }
}
