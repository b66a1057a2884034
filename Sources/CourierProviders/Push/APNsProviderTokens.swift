import CanonicalJSON
import CourierModel
import Crypto
import GateVocabulary
import Synchronization

/// A `.p8` file as Apple's developer site gives it out once.
struct APNsKey: Sendable {
    let key: P256.Signing.PrivateKey

    init(_ file: CredentialFile) throws(CredentialError) {
        let text = String(decoding: try file.read(), as: UTF8.self)
        do {
            key = try P256.Signing.PrivateKey(pemRepresentation: text)
        } catch {
            throw CredentialError(
                path: file.path, why: "is not a P-256 key in PEM",
                hint: "give the .p8 file as downloaded from Apple's developer site")
        }
    }
}

/// The one provider token of an app: signed when it is first needed, kept 50 minutes, shared by all requests.
final class APNsProviderTokens: Sendable {
    struct Token: Sendable, Hashable {
        var text: String
        /// Tells a token from the next one.
        var number: Int
    }

    private struct State {
        var key: APNsKey
        var token: Token?
        var count = 0
        var schedule = ProviderTokenSchedule(issuedAt: .min)
    }

    private let keyID: String
    private let teamID: String
    private let clock: ProviderClock
    private let state: Mutex<State>

    init(_ configuration: APNsConfiguration, _ clock: ProviderClock) throws(CredentialError) {
        keyID = configuration.keyID
        teamID = configuration.teamID
        self.clock = clock
        state = Mutex(State(key: try APNsKey(configuration.key)))
    }

    func current() throws -> Token {
        try state.withLock { state in
            if let token = state.token, !state.schedule.isDue(at: clock.uptimeMilliseconds()) { return token }
            return try renew(&state)
        }
    }

    /// - Returns: The token to try in place of the refused one, whoever had it made; `nil` when it is too young to be replaced.
    func replacement(of refused: Token) throws -> Token? {
        try state.withLock { state in
            if let token = state.token, token.number > refused.number { return token }
            guard state.schedule.mayRenew(at: clock.uptimeMilliseconds()) else { return nil }
            return try renew(&state)
        }
    }

    /// A token of another key does not count as a renewal to Apple. The same key keeps its token.
    func replace(_ key: APNsKey) {
        state.withLock { state in
            if state.key.key.rawRepresentation == key.key.rawRepresentation { return }
            state.key = key
            state.token = nil
        }
    }

    private func renew(_ state: inout State) throws -> Token {
        let now = clock.now()
        let text = try SignedToken.es256(
            header: ["alg": "ES256", "kid": .string(keyID)],
            claims: ["iat": .integer(now.seconds), "iss": .string(teamID)], key: state.key.key)
        state.count += 1
        let token = Token(text: text, number: state.count)
        state.token = token
        state.schedule = ProviderTokenSchedule(issuedAt: clock.uptimeMilliseconds())
        return token
    }
}
