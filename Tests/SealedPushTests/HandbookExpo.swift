#if canImport(ExpoModulesCore)
    import ExpoModulesCore
    import Foundation
    import SealedPush

    /// What the app's JavaScript asks of an iPhone. Private keys stay in the Secure Enclave or the keychain.
    public final class SendgateModule: Module {
        /// The key that the next registration is for.
        private var made: (reference: [UInt8], device: String)?

        public func definition() -> ModuleDefinition {
            Name("Sendgate")

            AsyncFunction("trust") { (note: String) in
                let records = try PushRecords()
                do {
                    try records.store(PushRecords.trusted(Array(note.utf8), after: records.keyset()))
                } catch SealedPushError.staleKeyset {
                    // The server has none that is newer.
                }
            }

            AsyncFunction("activeKey") { (device: String) -> String? in
                let state = try PushRecords().state()
                return state?.device == device ? state?.keys.active?.keyID : nil
            }

            AsyncFunction("makeKey") { (device: String) -> String in
                let (reference, publicKey) = try PushKey.make()
                self.made = (reference, device)
                return Data(publicKey).base64URL
            }

            AsyncFunction("prove") {
                (keyID: String, challenge: String, oldChallenge: String?) -> [String: String] in
                guard let made = self.made else { throw CocoaError(.fileNoSuchFile) }
                let records = try PushRecords()
                let stored = try records.state()
                // Another device than before begins anew.
                var state = stored?.device == made.device ? stored! : PushRecords.State(device: made.device)
                // Stored first: the gateway may seal to it before the answer to the confirmation is here.
                state.pending = try KeptDeviceKeys.Key(
                    keyID: keyID, suiteName: "P256_SHA256_AES256GCM", reference: made.reference)
                try records.store(state)
                let (opener, now) = (try records.opener(), Shown.now())
                var proofs = ["proof": try opener.proof(forChallenge: challenge, now: now)]
                proofs["old_key_proof"] = try oldChallenge.map {
                    try opener.proof(forChallenge: $0, now: now)
                }
                return proofs
            }

            AsyncFunction("promote") { (keyID: String) in
                let records = try PushRecords()
                guard var state = try records.state(), let pending = state.pending, pending.keyID == keyID
                else { return }
                let dropped = try state.keys.rotate(to: pending, now: Shown.now())
                state.pending = nil
                try records.store(state)
                dropped.forEach(PushKey.delete)
            }

            AsyncFunction("verify") { (data: [String: String]) -> [String: String?] in
                let push = try PushRecords().opener().verify(fcm: data, now: Shown.now())
                let sendID: String =
                    switch push {
                    case .open(let push, _): push.sendID
                    case .sealed(let opening):
                        try JSONDecoder().decode(Sent.self, from: Data(opening.message.content)).sendID
                    }
                return ["deepLink": try Shown.link(of: push)?.absoluteString, "sendID": sendID]
            }
        }
    }

    private struct Sent: Decodable {
        let sendID: String
        enum CodingKeys: String, CodingKey { case sendID = "send_id" }
    }

    extension Data {
        fileprivate var base64URL: String {
            base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        }
    }
#endif
