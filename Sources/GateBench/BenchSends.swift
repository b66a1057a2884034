import GateVocabulary
import Synchronization

/// The sends of a measurement: ids never repeat, people are drawn at random, a share is refused.
final class BenchSends: Sendable {
    enum Body: String, Sendable {
        /// `statement.available`: the text goes out as it is.
        case open
        /// `transaction.remittance_sent`: sealed to the device's key.
        case sealed
    }

    let body: Body
    /// How many people it draws from; for sealed bodies those whose device has a key.
    let people: Int
    /// Of a hundred sends so many are promos without a consent, and so are refused.
    let refusedPercent: Int
    /// Tells the ids of one measurement from another's.
    let label: String
    private let random: Mutex<SplitMix>

    init(_ body: Body, people: Int, refusedPercent: Int, label: String) {
        self.body = body
        self.people = people
        self.refusedPercent = refusedPercent
        self.label = label
        random = Mutex(SplitMix(state: UInt64(truncatingIfNeeded: people &* 31 &+ refusedPercent)))
    }

    /// Called on any thread; who is drawn depends on the order of the calls alone.
    func request(_ number: Int) -> LoadRequest {
        let (person, id, share) = random.withLock {
            ($0.next() % UInt64(people), ($0.next(), $0.next()), $0.next() % 100)
        }
        let user = BenchGateway.user(Int(person))
        let uuid = MessageID(version4: id).uuidText
        let rest: String
        if share < UInt64(refusedPercent) {
            rest =
                #""type":"promo.offer","params":{"offer_id":"\#(uuid)","headline":"No fees this week"}"#
        } else {
            switch body {
            case .open:
                rest =
                    #""type":"statement.available","params":{"statement_id":"\#(uuid)","period":"October 2026"}"#
            case .sealed:
                rest =
                    #""type":"transaction.remittance_sent","params":{"amount":{"minor":500000,"currency":"NOK"},"recipient_name":"Ahmad Karimi","transaction_id":"\#(uuid)"}"#
            }
        }
        return LoadRequest(
            method: "POST", target: "/v1/sends",
            body: Array(#"{"id":"\#(label)-\#(number)","recipient":{"user":"\#(user)"},\#(rest)}"#.utf8))
    }
}

/// Sixty-four bits a step, the same in every run (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014). Draws people and ids of a benchmark, never a key.
struct SplitMix {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
