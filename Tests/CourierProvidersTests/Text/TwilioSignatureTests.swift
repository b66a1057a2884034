import CanonicalJSON
import CourierModel
import Foundation
import GateVocabulary
import Testing

/// What Twilio's own library signs.
@Suite struct TwilioSignatureTests {
    @Test func `what Twilio's library signs is genuine, and no altered form of it`() throws {
        let signer = try PeerProcess("twilio_sign.py", [])
        var texts = MailReadBackTests.Texts(state: 7)
        for number in 0..<200 {
            let publicURL = ["https://hooks.pay.example/twilio", "https://hooks.pay.example:8443/twilio"][
                number % 2]
            let query = number % 3 == 0 ? "" : "?send=\(number)&destination=n%2F1"
            let algorithm = number % 5 == 0 ? "HMAC_SHA256" : "HMAC_SHA1"
            var fields = [
                ("MessageSid", "SM\(number)"), ("From", "+4790000000"),
                ("Body", texts.text(MailReadBackTests.lines, countMax: 9)),
            ]
            for _ in 0..<texts.next(4) {
                fields.append(("Extra\(texts.next(2))", texts.text(MailReadBackTests.words, countMax: 3)))
            }
            let request: JSONValue = [
                "url": .string(publicURL + query), "token": "secret", "algorithm": .string(algorithm),
                "fields": .array(fields.map { .array([.string($0.0), .string($0.1)]) }),
            ]
            let json = CanonicalJSON.write(request)
            try signer.write(String(decoding: json, as: UTF8.self))
            let signed = try signer.readJSON()
            guard case .string(let signature)? = signed["signature"], case .string(let form)? = signed["form"]
            else {
                Issue.record("\(signed)")
                return
            }
            let route = InboundRoute.twilioMessages(
                TwilioWebhook(path: "/t", publicURL: publicURL, authTokens: [Array("secret".utf8)]))
            func read(_ form: String, query: String = query) -> InboundResult {
                route.read(
                    InboundRequest(
                        target: "/t" + query,
                        headers: [
                            ("X-Twilio-Signature", signature),
                            ("X-Twilio-Webhooks-Signature-Settings", "key=k1,algorithm=\(algorithm)"),
                        ],
                        body: Array(form.utf8)),
                    at: TestClock.now)
            }
            #expect(
                read(form)
                    == .pass([
                        InboundReport(
                            .reply(id: "SM\(number)", channel: .sms, from: "+4790000000", text: fields[2].1),
                            key: "twilio/SM\(number)")
                    ]), "\(form)")
            for altered in [
                read(form + "&A=b"), read(form.replacing("From", with: "from")),
                read(form, query: query + "?x"),
            ] {
                #expect(altered == .refused(status: 403, reason: "the signature is wrong"))
            }
        }
    }
}
