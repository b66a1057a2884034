import CanonicalJSON
import Foundation
import GateVocabulary
import PayloadComposition
import SealedFormat
import Testing

/// Every payload, byte for byte, as files a reviewer can read: a line of headers, the body, what is sealed.
///
/// Run once with `SENDGATE_RECORD_GOLDEN=1` after a wanted change, and read the difference before committing.
@Suite struct GoldenPayloadTests {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
        "Golden")

    struct Case: CustomTestStringConvertible, Sendable {
        var name: String
        var language: String
        var target: PayloadTarget
        var form: BodyForm
        var interruption: Interruption = .timeSensitive
        var privacy: PrivacyLevel = .full
        var unsubscribeLink: String?
        var hasAlertRecord = true
        var testDescription: String { name }
    }

    static let cases: [Case] = {
        let platforms: [(String, PayloadTarget)] = [
            ("apns", .apns(topic: "no.getdrop.app", suite: .p256)),
            ("fcm", .fcm(package: "no.getdrop.app", suite: .x25519)),
            ("expo-ios", .expo(.ios, suite: .p256)), ("expo-android", .expo(.android, suite: .p256)),
        ]
        var cases: [Case] = []
        for language in Sample.languages {
            for (name, target) in platforms {
                for form in [BodyForm.sealed, .generic, .full] {
                    cases.append(
                        Case(
                            name: "\(name)-\(form.rawValue)-\(language)", language: language, target: target,
                            form: form))
                }
            }
            for (name, target) in [("sms", PayloadTarget.sms), ("email", .email)] {
                for form in [BodyForm.generic, .full] {
                    cases.append(
                        Case(
                            name: "\(name)-\(form.rawValue)-\(language)", language: language, target: target,
                            form: form))
                }
            }
        }
        let link = "https://drop.example/u/AbC123"
        for (name, target) in platforms {
            cases.append(
                Case(
                    name: "\(name)-full-critical", language: "en", target: target, form: .full,
                    interruption: .critical))
            cases.append(
                Case(
                    name: "\(name)-sealed-critical", language: "en", target: target, form: .sealed,
                    interruption: .critical))
            cases.append(
                Case(
                    name: "\(name)-full-passive-private-unsubscribe", language: "en", target: target,
                    form: .full,
                    interruption: .passive, privacy: .generic, unsubscribeLink: link))
            cases.append(
                Case(
                    name: "\(name)-generic-hidden-unsubscribe", language: "nb", target: target,
                    form: .generic,
                    interruption: .passive, privacy: .hidden, unsubscribeLink: link))
            // A type with a number whose page says `alert_record: false`.
            for form in [BodyForm.full, .sealed] {
                cases.append(
                    Case(
                        name: "\(name)-\(form.rawValue)-no-alert-record", language: "en", target: target,
                        form: form, hasAlertRecord: false))
            }
        }
        cases.append(
            Case(
                name: "email-full-unsubscribe", language: "en", target: .email, form: .full,
                unsubscribeLink: link))
        return cases
    }()

    @Test(arguments: cases) func `a payload is what its golden file says`(_ sample: Case) throws {
        var notice = Sample(
            sample.language, privacy: sample.privacy, interruption: sample.interruption,
            unsubscribeLink: sample.unsubscribeLink, hasPlainNumbers: sample.target.channel == .sms)
        notice.hasAlertRecord = sample.hasAlertRecord
        let payload = try compose(notice.content, for: sample.target, as: sample.form)
        var lines = [payload.headers, try payload.filledForTest()]
        if let inner = payload.innerContent { lines.append(inner) }
        let actual = Data(lines.flatMap { $0 + [UInt8(ascii: "\n")] })
        let file = Self.folder.appendingPathComponent(sample.name + ".golden")
        if ProcessInfo.processInfo.environment["SENDGATE_RECORD_GOLDEN"] == "1" {
            try actual.write(to: file)
            Issue.record("recorded \(sample.name); run again without SENDGATE_RECORD_GOLDEN")
            return
        }
        let golden = try Data(contentsOf: file)
        #expect(String(decoding: actual, as: UTF8.self) == String(decoding: golden, as: UTF8.self))
    }

    @Test func `no golden file lies about without its case`() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        #expect(Set(files) == Set(Self.cases.map { $0.name + ".golden" }))
    }

    @Test(arguments: cases) func `a body is canonical JSON and as long as foretold`(_ sample: Case) throws {
        let payload = try compose(Sample(sample.language).content, for: sample.target, as: sample.form)
        let body = try payload.filledForTest()
        #expect(CanonicalJSON.isCanonical(body))
        #expect(body.count == payload.body.byteCount)
        if sample.target.channel == .push {
            #expect(payload.byteCount == body.count + sample.target.addedByteCount)
        }
        // What is refused is weighed alike, though its body is not kept.
        let weighed = try composedByteCount(
            Sample(sample.language).content, for: sample.target, as: sample.form)
        #expect(weighed == payload.byteCount)
    }

    @Test(arguments: cases.filter { $0.target.isFCM && $0.form != .sealed })
    func `what the origin key signs is what FCM is given, in the order of the names`(_ sample: Case) throws {
        let content = Sample(
            sample.language, privacy: sample.privacy, unsubscribeLink: sample.unsubscribeLink
        ).content
        let payload = try compose(content, for: sample.target, as: sample.form)
        let data = try CanonicalJSON.readCanonical(try payload.filledForTest())["message"]?["data"]
        let signed = try OpenPushContent { data?[$0.rawValue]?.stringValue }
        guard case .open(let push) = payload.content else { throw CompositionError.formNever }
        #expect(try push.signedContent() == signed)
    }
}

extension PayloadTarget {
    fileprivate var isFCM: Bool { if case .fcm = self { true } else { false } }
}
