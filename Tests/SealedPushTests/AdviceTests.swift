import SealedFormat
import SealedPush
import Testing

@Suite struct AdviceTests {
    /// The case itself is switched over, so a new one does not compile here until its name and advice are stated.
    private static func name(_ error: SealedPushError) -> String {
        switch error {
        case .malformedEnvelope: "malformedEnvelope"
        case .malformedConfiguration: "malformedConfiguration"
        case .unknownKey: "unknownKey"
        case .suiteMismatch: "suiteMismatch"
        case .expired: "expired"
        case .cannotOpen: "cannotOpen"
        case .malformedMessage: "malformedMessage"
        case .unknownOrigin: "unknownOrigin"
        case .forgedOrigin: "forgedOrigin"
        case .untrustedKeyset: "untrustedKeyset"
        case .staleKeyset: "staleKeyset"
        case .expiredKeyset: "expiredKeyset"
        case .repeatedMessageID: "repeatedMessageID"
        case .seenMessagesUnavailable: "seenMessagesUnavailable"
        case .unsigned: "unsigned"
        case .malformedMark: "malformedMark"
        }
    }

    private static let stated: [(SealedPushError, SealedPushError.Advice)] = [
        (.malformedEnvelope(detail: "d"), .showOwnText),
        (.malformedConfiguration(detail: "d"), .showOwnText),
        (.unknownKey(keyID: "k"), .registerAgain),
        (.suiteMismatch(keyID: "k"), .registerAgain),
        (.expired(expiredAt: 1), .showNothing),
        (.cannotOpen, .showOwnText),
        (.malformedMessage(detail: "d"), .showOwnText),
        (.unknownOrigin(originKeyID: "o"), .fetchKeyset),
        (.forgedOrigin(originKeyID: "o"), .showOwnText),
        (.untrustedKeyset(detail: "d"), .showOwnText),
        (.staleKeyset(version: 1, known: 2), .showOwnText),
        (.expiredKeyset(expiredAt: 1), .fetchKeyset),
        (.repeatedMessageID(messageID: "m"), .showNothing),
        (.seenMessagesUnavailable(detail: "d"), .showOwnText),
        (.unsigned, .showOwnText),
        (.malformedMark(detail: "d"), .showOwnText),
    ]

    @Test func `every error has the advice that is stated here`() {
        #expect(Set(Self.stated.map { Self.name($0.0) }).count == 16)
        for (error, advice) in Self.stated { #expect(error.advice == advice, "\(Self.name(error))") }
        #expect(Set(Self.stated.map(\.1)) == Set(SealedPushError.Advice.allCases))
    }

    /// Only an envelope that names a key or a suite the app does not have leads to a question about the registration.
    @Test(arguments: SealingSuite.allCases)
    func `a changed, foreign or forged envelope for the app's key starts no registration`(
        suite: SealingSuite
    ) throws {
        let scene = try Scene(suite)
        let opener = try scene.opener()
        func advice(_ envelope: [UInt8]) -> SealedPushError.Advice? {
            do throws(SealedPushError) {
                _ = try opener.open(envelope, now: Scene.now)
                return nil
            } catch { return error.advice }
        }
        let genuine = try scene.seal([1])
        var changed = genuine
        changed[changed.count - 10] ^= 1
        #expect(advice(changed) == .showOwnText)
        let stranger = try Scene(suite)
        #expect(advice(try stranger.seal([1])) == .showOwnText)
        #expect(advice(try scene.seal([1], signer: stranger.signer)) == .showOwnText)
        #expect(advice(Array("{}".utf8)) == .showOwnText)
        #expect(advice(genuine) == nil)
    }
}
