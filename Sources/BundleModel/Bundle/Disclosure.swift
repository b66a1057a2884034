package import GateVocabulary

/// A consent that no type asks for and a param proves: that of the person whom a notification to another one is about.
package struct Disclosure: Sendable {
    package let type: TypeID
    package let param: String
    package let purpose: Purpose

    package static let all = [
        Disclosure(
            type: TypeID("partner.alert"), param: "disclosure_consent",
            purpose: Purpose("partner_disclosure"))
    ]
}
