import BundleModel
import GateVocabulary

/// Which law holds where, written a second time and from other sources than `regions.yaml`.
///
/// Only law that is the same for every company: a bundle may be stricter anywhere, and says for itself what it takes the
/// rest of the world for.
enum LawOfTheLand {
    /// Member states of the European Union (Treaty on European Union Art. 52(1)), 27.
    static let europeanUnion = codes(
        "AT BE BG HR CY CZ DK EE FI FR DE GR HU IE IT LV LT LU MT NL PL PT RO SK SI ES SE")
    /// EFTA states in the EEA, where the GDPR holds since 20 July 2018 (EEA Joint Committee Decision 154/2018).
    static let eftaInEEA = codes("IS LI NO")
    /// Parts of a member state with an ISO code of their own where the Treaties apply: the French outermost
    /// regions (TFEU Arts. 349 and 355(1)) and Åland (TFEU Art. 355(4)).
    static let partsOfUnion = codes("GF GP MQ RE YT MF AX")
    /// The United Kingdom (UK GDPR, Data Protection Act 2018).
    static let unitedKingdom = codes("GB")
    /// Laws of their own, made to equal the GDPR: Jersey 2018, Guernsey 2017, Isle of Man 2018, Gibraltar 2021.
    static let equivalent = codes("JE GG IM GI")
    /// Laws of their own, written after the GDPR by states that mean to accede: Albania (Law No. 124/2024), Bosnia and
    /// Herzegovina (2025), North Macedonia (2020), Serbia (2018) and Kosovo (Law No. 06/L-082).
    static let ownAfterGDPR = codes("AL BA MK RS XK")
    /// Outside the Union, but under the data-protection act of a state that is in it or in the EEA: French
    /// overseas collectivities (Loi 78-17 Art. 125), Svalbard and Jan Mayen (Svalbard Act section 2).
    static let underStricterState = codes("BL PM NC PF WF TF SJ")

    /// Where a statute demands an opt-in for electronic marketing besides those of Europe, and no opt-out row can stand:
    /// Switzerland (UCA Art. 3(1)(o)), Canada (S.C. 2010, c. 23, s. 6(1)), Japan (Act No. 26 of 2002 Art. 3(1)), South Korea
    /// (Network Act Art. 50(1)), Türkiye (Law No. 6563 Art. 6(1)), Israel (Communications Law 5742-1982 s. 30A(b)), South
    /// Africa (Act 4 of 2013 s. 69(1)), Australia (Spam Act 2003 s. 16) and New Zealand (Unsolicited Electronic Messages
    /// Act 2007 s. 9).
    static let optInByStatute = codes("CH CA JP KR TR IL ZA AU NZ")

    /// Where the national law has the exception of ePrivacy Directive Art. 13(2), or UK PECR reg. 22(3), for customers
    /// who gave their address in a sale, and where a reading of the law found it. Poland and Hungary ask for consent, so does Bulgaria's
    /// Electronic Commerce Act Art. 6(4), and of Czechia, Estonia, Iceland, Liechtenstein, Lithuania and Romania it was not
    /// confirmed.
    static let softOptIn = codes(
        "AT BE HR CY DK FI FR DE GR IE IT LV LU MT NL PT SK SI ES SE NO GB")

    static func hasSoftOptIn(_ region: RegionCode) -> Bool { softOptIn.contains(region.country) }

    static var namesOfOptInByStatute: String {
        optInByStatute.map(\.description).sorted().joined(separator: ", ")
    }

    /// The United States and the territories that are in it for the purposes of the Communications Act
    /// (47 U.S.C. 153(58)) and have ISO codes of their own.
    static let unitedStates = codes("US AS GU MP PR UM VI")

    /// An IANA zone for each offset of the United States and its territories with people in it, those without
    /// summer time apart (49 CFR part 71).
    static let unitedStatesZones = [
        "America/Puerto_Rico", "America/New_York", "America/Chicago", "America/Denver", "America/Phoenix",
        "America/Los_Angeles", "America/Anchorage", "Pacific/Honolulu", "Pacific/Pago_Pago", "Pacific/Guam",
    ]

    /// The regimes by what they ask, the most first. An unknown place counts as the first.
    static let strictestFirst: [Regime] = [.gdpr, .ukGDPR, .gdprLike, .other]

    static func stricter(_ one: Regime, _ other: Regime) -> Regime {
        strictestFirst.first { $0 == one || $0 == other } ?? .gdpr
    }

    /// The least strict regime a bundle may give a region; `nil` where that is the bundle's own affair.
    static func leastRegime(of region: RegionCode) -> Regime? {
        let country = region.country
        if europeanUnion.contains(country) || eftaInEEA.contains(country) || partsOfUnion.contains(country) {
            return .gdpr
        }
        if unitedKingdom.contains(country) { return .ukGDPR }
        if equivalent.contains(country) || underStricterState.contains(country)
            || ownAfterGDPR.contains(country)
        {
            return .gdprLike
        }
        return nil
    }

    /// Whether no law of the region lets a company market by electronic mail until they object.
    static func demandsOptIn(in region: RegionCode) -> Bool {
        leastRegime(of: region) != nil || optInByStatute.contains(region.country)
    }

    /// The only statute this build knows that lets a company market by e-mail until they object. Another is added here.
    static let optOutStatute = "15 U.S.C. 7704"

    /// Whether a row that asks for no opt-in to marketing by e-mail stands on a law this build knows.
    static func knowsLaw(of row: PermissionRow) -> Bool {
        guard row.channel == .email else { return false }
        if row.rule == .optInOrExistingCustomer, hasSoftOptIn(row.region) { return true }
        return isUnitedStates(row.region) && row.rationale.law.contains { $0.contains(optOutStatute) }
    }

    /// Whether a purchase is no consent to marketing there: a statute asks for the person's own word.
    static func demandsOwnWord(in region: RegionCode) -> Bool { optInByStatute.contains(region.country) }

    // MARK: Rows

    /// A row of `regions.yaml` that a statute makes necessary.
    struct DemandedRow {
        var region: RegionCode
        var channel: Channel
        var category: GateVocabulary.Category
        /// The row asks for this or for more.
        var least: PermissionRule
        var law: String
    }

    /// Every row the law of its region makes necessary, by region: without it the table speaks for a country whose statute
    /// is known, and a person there whose account is elsewhere is asked for what the account's law asks.
    static let demandedRows: [DemandedRow] = {
        let consent =
            "ePrivacy Directive 2002/58/EC Art. 13(1) and (2), which each state transposes for itself"
        var found: [DemandedRow] = []
        for region in europeanUnion.union(eftaInEEA).union(unitedKingdom) {
            found.append(
                DemandedRow(
                    region: region, channel: .email, category: .marketing,
                    least: hasSoftOptIn(region) ? .optInOrExistingCustomer : .optIn,
                    law: unitedKingdom.contains(region) ? "UK PECR 2003 reg. 22(2) and (3)" : consent))
        }
        for region in optInByStatute {
            for channel in [Channel.sms, .email] {
                found.append(
                    DemandedRow(
                        region: region, channel: channel, category: .marketing, least: .optIn,
                        law: "the statutes of \(namesOfOptInByStatute) on electronic messages"))
            }
        }
        for region in unitedStates {
            for category in GateVocabulary.Category.allCases {
                let isMarketing = category == .marketing
                found.append(
                    DemandedRow(
                        region: region, channel: .sms, category: category,
                        least: isMarketing ? .writtenConsent : .expressConsent,
                        law: "47 CFR 64.1200(a)(\(isMarketing ? 2 : 1))"))
            }
        }
        return found.sorted { $0.region.packed < $1.region.packed }
    }()

    // MARK: Days

    private static func day(_ text: StaticString) -> CalendarDate {
        guard let day = CalendarDate("\(text)") else { preconditionFailure("\(text) is no day") }
        return day
    }

    /// Where a regulator lets no text bring a code, and since when.
    static let codeTextBans: [(region: RegionCode, from: CalendarDate, law: String)] = codes("AE").map {
        (
            $0, day("2026-03-31"),
            "Central Bank of the UAE, Notice 2025/3057: no one-time password by text or e-mail from 31 March 2026"
        )
    }

    /// Where the laws hold that let a text bring a code, by a part of their citation. The states that mean to accede have none of
    /// their own on it, and a company of the Union that keeps accounts there is under its own.
    static let codeTextLaws: [(citation: String, regions: Set<RegionCode>)] = [
        (
            "(EU) 2018/389",
            europeanUnion.union(eftaInEEA).union(partsOfUnion).union(ownAfterGDPR).union(codes("SJ"))
        ),
        ("UK SCA-RTS", unitedKingdom.union(equivalent)), ("NIST SP 800-63B", unitedStates),
    ]

    /// Since when a law counts that a dated row may cite, by a part of its citation: a fact, which no page moves.
    static let days: [(citation: String, from: CalendarDate)] = [
        ("47 CFR 64.1200(a)(2)", day("2013-10-16")), ("47 CFR 64.1200(a)(1)", day("1992-12-20")),
        (optOutStatute, day("2004-01-01")), ("TKG 2021", day("2021-11-01")),
        ("NN 76/2022", day("2022-07-12")),
        ("IX-2135", day("2021-12-01")), ("(PKE)", day("2024-11-10")), ("ZEKom-2", day("2022-11-10")),
        ("Act No. 452/2021", day("2022-02-01")), ("UK PECR 2003", day("2003-12-11")),
        ("Spam Act 2003", day("2004-04-10")), ("S.C. 2010, c. 23", day("2014-07-01")),
        ("Unfair Competition Art. 3(1)(o)", day("2007-04-01")), ("5742-1982", day("2008-12-01")),
        ("Act No. 26 of 2002", day("2008-12-01")), ("Network Act Art. 50(1)", day("2014-11-29")),
        ("Unsolicited Electronic Messages Act 2007", day("2007-09-05")), ("Law No. 6563", day("2015-05-01")),
        ("Act 4 of 2013", day("2021-07-01")), ("(EU) 2018/389", day("2019-09-14")),
        ("UK SCA-RTS", day("2021-01-01")), ("NIST SP 800-63B", day("2017-06-22")),
    ]

    /// The day of the GDPR (Art. 99(2)): rows that replace an older national rule count from it.
    static let gdprDay = day("2018-05-25")

    /// The day on which a reply ends every text (47 CFR 64.1200(a)(10), as postponed).
    static let allTextsDay = day("2027-01-31")

    /// Since when a region has the regime that the law gives it at least; `nil` where that is the bundle's own affair.
    static func since(_ region: RegionCode) -> CalendarDate? {
        let own = [
            "AL": day("2025-02-01"), "BA": day("2025-10-04"), "MK": day("2020-02-24"),
            "RS": day("2019-08-21"),
            "XK": day("2019-03-11"), "GI": day("2021-01-01"), "GB": day("2021-01-01"),
            "SJ": day("2018-07-20"),
        ]
        let country = region.country
        if let day = own[country.description] { return day }
        if eftaInEEA.contains(country) { return day("2018-07-20") }
        if underStricterState.contains(country) { return day("2019-06-01") }
        return leastRegime(of: country) == nil ? nil : gdprDay
    }

    static func isUnitedStates(_ region: RegionCode) -> Bool { unitedStates.contains(region.country) }

    private static func codes(_ text: String) -> Set<RegionCode> {
        Set(text.split(separator: " ").map { RegionCode(String($0))! })
    }
}
