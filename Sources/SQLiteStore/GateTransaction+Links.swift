import GateSteps
import GateVocabulary
import GatewayPipeline

extension GateReading {
    private static let link = StatementText(
        "unsubscribe_link",
        """
        SELECT l.category, l.channel, l.destination, l.mailbox, p.subject
        FROM unsubscribe_link AS l LEFT JOIN person AS p ON p.number = l.person WHERE l.id = ?
        """)

    final func unsubscribeLink(_ id: Tag) throws -> UnsubscribeLink? {
        try gate.first(Self.link, { $0.add(id) }) { row in
            let (category, channel) = (try row.code(Category.self), try row.code(Channel.self))
            let destination: Tag = try row.id()
            let mailbox = row.optionalByteArray()
            return UnsubscribeLink(
                id: id, subject: try row.id(), category: category, channel: channel, destination: destination,
                mailbox: mailbox)
        }
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
