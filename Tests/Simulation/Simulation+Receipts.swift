import CanonicalJSON
import GateTestKit
import GateVocabulary
import InMemoryStore

@testable import GateSteps

/// A message that the hop has.
struct HandedOver {
    var send: SendID
    var destination: String
    var user: String
}

/// What was reported of a message, and where that is recorded.
struct Receipt {
    var body: JSONObject
    var user: String
    var trail: JSONValue?
}

/// The entries of receipts: each tells what none before it does.
struct RecordedReceipts {
    private var all: Set<String> = []
    private var looks: Set<String> = []
    private var taps: Set<String> = []

    /// - Returns: What an earlier entry tells as well.
    mutating func add(_ entry: JSONValue) -> String? {
        func text(_ member: String) -> String { entry[member].map { "\($0)" } ?? "" }
        let place = "\(text("send_id")) at \(text("destination"))"
        let what = "\(place): \(text("event")) \(text("act")) \(text("at"))"
        if !all.insert(what).inserted { return what }
        if entry["opened_after"] != nil, !looks.insert(place).inserted { return "a first look at \(place)" }
        if entry["tapped"] == true, !taps.insert(place).inserted { return "a first tap on \(place)" }
        return nil
    }
}

extension Simulation {
    /// What a person did, as the app has it: each is an act of its own, so that its entry tells it from the others.
    private static let actions = ["opened", "seen", "dismissed", "badge_cleared"]

    mutating func receipt() {
        switch dice.below(8) {
        case 0: receiptOfNothing()
        case 1: receiptOfAnything()
        case 2..<4: repeatReceipt()
        default: newReceipt()
        }
    }

    private func isKnown(_ user: String) -> Bool { people.contains { $0.user == user } }

    private mutating func report(_ body: JSONObject) -> SimulatedGateway.Reply {
        call(losesAnswers: false, "product", "POST", "/v1/receipts", body)
    }

    /// One that finds no message leaves nothing.
    private mutating func receiptOfNothing() {
        let known = handedOver.last
        let isOfSend = known != nil && dice.onceIn(2)
        let send = isOfSend ? known!.send.uuidText : "0190b5a0-0000-7000-8000-000000000000"
        let before = gate.store.committed.counts
        let reply = report([
            "send": .string(send), "destination": .string(isOfSend ? "d_9" : "d_1"), "event": "token_gone",
            "at": .string(environment.now().rfc3339),
        ])
        count("receipt of nothing")
        require(reply.status == 404, "a receipt of nothing is answered \(reply.status): \(reply.json)")
        require(gate.store.committed.counts == before, "a receipt of nothing leaves something")
    }

    /// One of a send whatever became of it: nothing is observed of what was taken back.
    private mutating func receiptOfAnything() {
        let promised = sent.filter { $0.reply.status == 202 }
        guard !promised.isEmpty else { return }
        let earlier = dice.one(of: promised)
        guard let id = earlier.reply["send_id"], let send = SendID(uuidText: id) else { return }
        let body: JSONObject = [
            "send": .string(id), "destination": earlier.body["channel"] == "sms" ? "n" : "d_1",
            "event": "accepted_by_provider", "at": .string(environment.now().rfc3339),
        ]
        let reply = report(body)
        require(
            [200, 404, 409].contains(reply.status),
            "a receipt of \(earlier.reply.json) is answered \(reply.status): \(reply.json)")
        guard reply.status == 200 else { return }
        require(isKnown(earlier.user), "a receipt of \(id) is taken, whose person is forgotten")
        require(!takenBack.contains(send), "a receipt of \(id) is taken, which was taken back")
        requireEntry(of: reply)
    }

    private mutating func newReceipt() {
        guard !handedOver.isEmpty else { return }
        let message = dice.one(of: handedOver)
        var body: JSONObject = [
            "send": .string(message.send.uuidText), "destination": .string(message.destination),
            "at": .string(environment.now().rfc3339),
        ]
        switch dice.below(16) {
        case 0: body["event"] = "token_gone"
        case 1..<4: body["event"] = "failed"
        case 4..<6: body["event"] = "expired"
        case 6..<10: body["event"] = "accepted_by_provider"
        default:
            body["event"] = "user_observed"
            body["action"] = .string(dice.one(of: Self.actions))
        }
        let reply = report(body)
        guard isKnown(message.user) else {
            return require(
                reply.status == 404,
                "a receipt of \(message), who is forgotten, is answered \(reply.status): \(reply.json)")
        }
        require(reply.status == 200, "the receipt \(body) is answered \(reply.status): \(reply.json)")
        requireEntry(of: reply)
        count(body["event"] == "token_gone" ? "token gone" : "receipt")
        receipts.append(Receipt(body: body, user: message.user, trail: reply.json["trail"]))
        if receipts.count > 32 { receipts.removeFirst() }
    }

    /// The same one again is the first one.
    private mutating func repeatReceipt() {
        guard !receipts.isEmpty else { return }
        let first = dice.one(of: receipts)
        let before = gate.store.committed.counts
        let reply = report(first.body)
        require(gate.store.committed.counts == before, "a receipt that comes again leaves something")
        guard isKnown(first.user) else {
            return require(
                reply.status == 404,
                "a receipt of \(first.user), who is forgotten, is answered \(reply.status): \(reply.json)")
        }
        count("receipt again")
        require(
            reply.status == 200 && reply.json["replayed"] == true && reply.json["trail"] == first.trail,
            "the receipt \(first.body) is answered again \(reply.status): \(reply.json)")
    }
}
