import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import InMemoryStore
import GateRecords

@testable import GateSteps

/// One person's phone number, and what was agreed to at this number and at those before it, as answers have it.
struct SimulatedLine {
    /// The number that is registered now.
    var number: String?
    var isConfirmed = false
    /// When the number was verified, and the place of that among the verifications of everybody.
    var verification: (at: Instant, place: Int)?
    /// By number: the consent to offers that is in force.
    var offers: [String: String] = [:]
    /// Numbers where service messages were agreed to.
    var service: Set<String> = []
    /// Numbers where service messages were ended by a reply, and not agreed to since.
    var ended: Set<String> = []

    func mayReceive(isMarketing: Bool, at number: String?) -> Bool {
        guard let number, number == self.number, isConfirmed else { return false }
        return isMarketing ? offers[number] != nil : !ended.contains(number)
    }

    /// - Parameter endsAll: Whether the word ends what was never asked for as well.
    mutating func stop(_ number: String, endsAll: Bool) {
        offers[number] = nil
        if service.remove(number) != nil || endsAll { ended.insert(number) }
    }
}

extension Simulation {
    /// Fewer than people, so that some share one.
    private static let numbers = ["+4790000011", "+4790000012", "+4790000013"]
    private static let address = "n"

    /// A number as the next caller writes it: the gateway knows it by its one canonical form.
    private func registration(of number: String) -> String {
        [number, "+47 \(number.dropFirst(3))", "tel:+47-\(number.dropFirst(3))"][idCount % 3]
    }

    /// The same as the next carrier names it.
    private func sender(of number: String) -> String {
        [number, String(number.dropFirst()), "00\(number.dropFirst())", "+47 (\(number.dropFirst(3)))"][
            idCount % 4]
    }

    private static let withdrawals = ["STOP", "Stopp!", "avslutt", "Unsubscribe, please"]
    private static let otherWords = ["START", "UNSTOP", "YES", "HELP", "ja", "thanks"]

    /// Something happens to a person's number.
    mutating func line(of index: Int) {
        switch dice.below(8) {
        case 0..<3: putNumber(of: index)
        case 3: removeNumber(of: index)
        case 4..<7: agreeToTexts(of: index)
        default: endOffers(of: index)
        }
    }

    private mutating func putNumber(of index: Int) {
        let number = dice.one(of: Self.numbers)
        let isConfirmed = !dice.onceIn(4)
        var body: JSONObject = ["kind": "sms", "value": .string(registration(of: number))]
        // As it is read back: to the unit that a request states.
        let verifiedAt = environment.now()
        if isConfirmed { body["verified_at"] = .string(verifiedAt.rfc3339) }
        let reply = call(
            "product", "PUT", "/v1/recipients/\(people[index].user)/addresses/\(Self.address)", body)
        require(reply.status == 200, "a number is answered \(reply.status): \(reply.json)")
        requireEntry(of: reply)
        let earlier = people[index].line.number
        count(
            earlier == nil ? "number added" : earlier == number ? "number confirmed" : "number replaced")
        people[index].line.number = number
        people[index].line.isConfirmed = isConfirmed
        if isConfirmed {
            people[index].line.verification = (verifiedAt, verifications.count)
            verifications.append((number, people[index].user, verifiedAt))
        }
        // What the number said no to before holds for whoever registers it.
        if earlier != number, stoppedNumbers.contains(number) {
            people[index].line.stop(number, endsAll: endsAllTexts)
        }
    }

    private mutating func removeNumber(of index: Int) {
        guard people[index].line.number != nil else { return }
        let reply = call(
            losesAnswers: false, "product", "DELETE",
            "/v1/recipients/\(people[index].user)/addresses/\(Self.address)")
        require(reply.status == 200, "a number that goes is answered \(reply.status): \(reply.json)")
        requireEntry(of: reply)
        count("number removed")
        people[index].line.number = nil
        people[index].line.verification = nil
    }

    private mutating func agreeToTexts(of index: Int) {
        guard let number = people[index].line.number else { return }
        let isMarketing = dice.onceIn(2)
        let agreed = agree(
            index, to: isMarketing ? "marketing" : "transactional",
            under: isMarketing ? "promo" : "sms_service", on: "sms", at: Self.address)
        guard let (id, reply) = agreed, reply["why"] != "newer_word" else { return }
        count("agreed to texts")
        if isMarketing {
            people[index].line.offers[number] = id
        } else {
            people[index].line.service.insert(number)
            people[index].line.ended.remove(number)
        }
    }

    private mutating func endOffers(of index: Int) {
        guard let number = people[index].line.number, let consent = people[index].line.offers[number] else {
            return
        }
        let reply = call(
            "product", "POST", "/v1/recipients/\(people[index].user)/consents/\(consent)/withdraw")
        require(reply.status == 200, "an end of offers is answered \(reply.status): \(reply.json)")
        requireEntry(of: reply)
        people[index].line.offers[number] = nil
    }

    // MARK: Replies

    /// A number answers: with a word that ends what was agreed to there, or with one that changes nothing.
    mutating func hearReply() {
        let held = people.compactMap(\.line.number)
        let number = dice.one(of: held.isEmpty || dice.onceIn(6) ? Self.numbers : held)
        let isWithdrawal = dice.onceIn(2)
        let word = dice.one(of: isWithdrawal ? Self.withdrawals : Self.otherWords)
        idCount += 1
        let body: JSONObject = [
            "id": .string("r\(idCount)"), "channel": "sms", "from": .string(sender(of: number)),
            "text": .string(word),
            "received_at": .string(environment.now().rfc3339),
        ]
        let before = states()
        let reply = call("replies", "POST", "/v1/replies", body)
        let isHeld = people.contains { $0.line.number == number }
        // Where nothing counts, because it had ended before or never began, nothing ends.
        let wanted: Set<String?> =
            !isWithdrawal ? ["not_a_withdrawal"] : isHeld ? [nil, "already_so"] : ["nothing_known_here"]
        let why = reply["why"]
        require(
            reply.status == 200 && wanted.contains(why)
                && reply["effect"] == (why == nil ? "withdrawn" : "none"),
            "the reply \(word) is answered \(reply.status): \(reply.json)")
        requireEntry(of: reply)
        count(isWithdrawal ? "stop" : "other reply")
        if isWithdrawal { stoppedNumbers.insert(number) }
        let after = states()
        for (index, (old, new)) in zip(before, after).enumerated() {
            guard isWithdrawal, people[index].line.number == number else {
                let user = people[index].user
                require(old == new, "\(word) from \(number) changes \(user): \(old as Any), \(new as Any)")
                continue
            }
            hear(number, index, old, new)
        }
        guard dice.onceIn(4) else { return }
        let again = call("replies", "POST", "/v1/replies", body)
        count("reply again")
        require(
            again.json["replayed"] == true && again.json["trail"] == reply.json["trail"],
            "a reply that comes again is answered \(again.json), and was \(reply.json)")
        require(states() == after, "a reply that comes again changes a person")
    }

    private var endsAllTexts: Bool {
        policy.bundle.channels.smsRevocation?.endsAllTextsFrom.map { $0.instant <= environment.now() } == true
    }

    /// A number's no takes away, and leaves nothing there to which consent was given.
    private mutating func hear(
        _ number: String, _ index: Int, _ old: RecipientState?, _ new: RecipientState?
    ) {
        count("stop heard")
        people[index].line.stop(number, endsAll: endsAllTexts)
        let (user, line) = (people[index].user, people[index].line)
        guard let old, let new, let place = new.addresses.first(where: { $0.value == number })?.tag else {
            return require(false, "\(number) is not what is stored of \(user)")
        }
        require(
            new.given.isSubset(of: old.given) && new.switchedOn.isSubset(of: old.switchedOn),
            "a no from \(number) gives something: \(old), then \(new)")
        let left = new.given.filter { $0.channel == .sms && ($0.address == nil || $0.address == place) }
        require(left.isEmpty, "a no from \(number) leaves \(left)")
        let waiting = gate.store.committed.outbox.values.first { row in
            row.subject == new.subject && row.destination == place && row.attemptedAt == nil
                && !row.mayHaveArrived
                && (row.category == .marketing
                    || row.category == .transactional && line.ended.contains(number))
        }
        require(waiting == nil, "after a no from \(number) there waits \(waiting as Any)")
    }

    // MARK: Who holds a number

    /// Whether somebody else has verified the person's number since, or at the same moment: then nothing confidential may go
    /// there, whatever became of the other.
    func isTakenOver(_ person: Person) -> Bool {
        guard let number = person.line.number, let own = person.line.verification else { return false }
        return verifications[own.place...].contains {
            $0.number == number && $0.user != person.user && $0.at >= own.at
        }
    }

    /// Whether nobody else has ever verified the person's number so late that it could be theirs.
    func isUncontested(_ person: Person) -> Bool {
        guard let number = person.line.number, let own = person.line.verification else { return true }
        return !verifications.contains { $0.number == number && $0.user != person.user && $0.at >= own.at }
    }

    // MARK: What must hold

    /// A text goes to a number that is its person's, is confirmed, and has not said no since it last said yes.
    mutating func requireText(_ delivery: Delivery, _ type: String, isMarketing: Bool, to person: Person) {
        count("text goes")
        require(
            person.line.mayReceive(isMarketing: isMarketing, at: delivery.token),
            "a text of \(type) goes to \(delivery.token) of \(person.user): \(person.line)")
        // The only texts here that are not confidential are offers.
        require(
            isMarketing || !isTakenOver(person),
            "a text of \(type) goes to \(delivery.token), which \(person.user) does not hold any more")
        guard Self.sealedTypes.contains(type) else { return }
        let text = String(decoding: delivery.body + delivery.headers, as: UTF8.self)
        for secret in secrets { require(!text.contains(secret), "\(type) leaves in clear: \(text)") }
    }

    /// What is stored of each person, in their order.
    mutating func states() -> [RecipientState?] {
        let users = people.map { UserID($0.user) }
        do {
            return try gate.store.read { store in
                try users.map { try store.subject(of: $0).flatMap { try store.state(of: $0.id) } }
            }
        } catch {
            require(false, "people cannot be read: \(error)")
            return []
        }
    }
}

extension RecipientState {
    /// Where a consent counts.
    fileprivate var given: Set<ConsentsInForce.Scope> {
        Set(consentsInForce.byScope.filter { $0.value.state == .given }.keys)
    }

    private struct Choice: Hashable {
        var scope: String
        var channel: Channel
        var place: Tag?
    }

    /// What the person switched on, and has not switched off again.
    fileprivate var switchedOn: Set<AnyHashable> {
        Set(
            preferences.filter { $0.state == .userOn }.map {
                AnyHashable(Choice(scope: $0.scope, channel: $0.channel, place: $0.destination))
            })
    }
}
