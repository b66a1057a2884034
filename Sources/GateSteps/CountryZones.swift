package import GateVocabulary

/// The zones of a country, for a recipient of whom no zone is known.
///
/// Taken from `zone1970.tab` of tzdata 2025b, which is in the public domain. Of zones whose clocks agree from 2026
/// on, one is listed. Kosovo (XK) is not in the file; it has the time of Belgrade.
package enum CountryZones {
    /// - Returns: None for a code of no country.
    package static func zones(of country: RegionCode) -> [String] { byCountry[country] ?? [] }

    /// The parts of France in other parts of the world that have a code of their own (TFEU Arts. 349 and 355(2), Annex II).
    ///
    /// Their law counts as `gdpr`, and it is always night in one of them.
    package static let overseas = Set(
        "BL GF GP MF MQ NC PF PM RE TF WF YT".split(separator: " ").compactMap { RegionCode(String($0)) })

    /// Countries, then their zones.
    private static let table = """
        AD Europe/Andorra | AE OM RE SC Asia/Dubai | AF Asia/Kabul
        AG AI AW BL BQ CW DM GD GP KN LC MF MS PR SX TT VC VG VI America/Puerto_Rico | AL Europe/Tirane
        AM Asia/Yerevan | AO BJ CF CG CM GA GQ NE NG Africa/Lagos
        AQ Antarctica/Casey Antarctica/Davis Antarctica/Mawson Antarctica/Palmer Antarctica/Troll Pacific/Auckland Pacific/Port_Moresby Asia/Riyadh
        AR America/Argentina/Buenos_Aires | AS Pacific/Pago_Pago | AT Europe/Vienna
        AU Australia/Lord_Howe Antarctica/Macquarie Australia/Broken_Hill Australia/Brisbane Australia/Darwin Australia/Perth Australia/Eucla Asia/Tokyo
        AX FI Europe/Helsinki | AZ Asia/Baku | BA HR ME MK RS SI XK Europe/Belgrade | BB America/Barbados
        BD Asia/Dhaka | BE LU NL Europe/Brussels | BF CI GH GM GN IS ML MR SH SL SN TG Africa/Abidjan
        BG Europe/Sofia | BH QA Asia/Qatar | BI BW MW MZ RW ZM ZW Africa/Maputo | BM Atlantic/Bermuda
        BN MY Asia/Kuching | BO America/La_Paz
        BR America/Noronha America/Belem America/Campo_Grande America/Eirunepe | BS America/Toronto
        BT Asia/Thimphu | BY Europe/Minsk | BZ America/Belize
        CA America/St_Johns America/Halifax America/Toronto America/Winnipeg America/Regina America/Edmonton America/Dawson_Creek America/Vancouver America/Panama America/Puerto_Rico
        CC MM Asia/Yangon | CD Africa/Maputo Africa/Lagos | CH DE LI Europe/Zurich | CK Pacific/Rarotonga
        CL America/Santiago America/Coyhaique Pacific/Easter | CN Asia/Shanghai Asia/Urumqi | CO America/Bogota
        CR America/Costa_Rica | CU America/Havana | CV Atlantic/Cape_Verde | CX KH LA TH VN Asia/Bangkok
        CY Asia/Nicosia | CZ SK Europe/Prague | DJ ER ET KE KM MG SO TZ UG YT Africa/Nairobi
        DK NO SE SJ Europe/Berlin | DO America/Santo_Domingo | DZ Africa/Algiers
        EC America/Guayaquil Pacific/Galapagos | EE Europe/Tallinn | EG Africa/Cairo | EH Africa/El_Aaiun
        ES Europe/Madrid Atlantic/Canary | FJ Pacific/Fiji | FK Atlantic/Stanley
        FM Pacific/Kosrae Pacific/Port_Moresby | FO Atlantic/Faroe | FR MC Europe/Paris
        GB GG IM JE Europe/London | GE Asia/Tbilisi | GF America/Cayenne | GI Europe/Gibraltar
        GL America/Nuuk America/Danmarkshavn America/Thule | GR Europe/Athens | GS Atlantic/South_Georgia
        GT America/Guatemala | GU MP Pacific/Guam | GW Africa/Bissau | GY America/Guyana | HK Asia/Hong_Kong
        HN America/Tegucigalpa | HT America/Port-au-Prince | HU Europe/Budapest
        ID Asia/Jakarta Asia/Makassar Asia/Jayapura | IE Europe/Dublin | IL Asia/Jerusalem | IN Asia/Kolkata
        IO Indian/Chagos | IQ Asia/Baghdad | IR Asia/Tehran | IT SM VA Europe/Rome | JM America/Jamaica
        JO Asia/Amman | JP Asia/Tokyo | KG Asia/Bishkek | KI Pacific/Tarawa Pacific/Kanton Pacific/Kiritimati
        KP Asia/Pyongyang | KR Asia/Seoul | KW SA YE Asia/Riyadh | KY PA America/Panama | KZ Asia/Almaty
        LB Asia/Beirut | LK Asia/Colombo | LR Africa/Monrovia | LS SZ ZA Africa/Johannesburg | LT Europe/Vilnius
        LV Europe/Riga | LY Africa/Tripoli | MA Africa/Casablanca | MD Europe/Chisinau | MH TV WF Pacific/Tarawa
        MN Asia/Ulaanbaatar Asia/Hovd | MO Asia/Macau | MQ America/Martinique | MT Europe/Malta
        MU Indian/Mauritius | MV Indian/Maldives
        MX America/Mexico_City America/Cancun America/Matamoros America/Ciudad_Juarez America/Mazatlan America/Tijuana
        NA Africa/Windhoek | NC Pacific/Noumea | NF Pacific/Norfolk | NI America/Managua | NP Asia/Kathmandu
        NR Pacific/Nauru | NU Pacific/Niue | NZ Pacific/Auckland Pacific/Chatham | PE America/Lima
        PF Pacific/Tahiti Pacific/Marquesas Pacific/Gambier | PG Pacific/Port_Moresby Pacific/Bougainville
        PH Asia/Manila | PK Asia/Karachi | PL Europe/Warsaw | PM America/Miquelon | PN Pacific/Pitcairn
        PS Asia/Gaza | PT Europe/Lisbon Atlantic/Azores | PW Pacific/Palau | PY America/Asuncion
        RO Europe/Bucharest
        RU Europe/Kaliningrad Europe/Moscow Europe/Astrakhan Asia/Yekaterinburg Asia/Omsk Asia/Novosibirsk Asia/Irkutsk Asia/Chita Asia/Vladivostok Asia/Magadan Asia/Kamchatka
        SB Pacific/Guadalcanal | SD Africa/Khartoum | SG Asia/Singapore | SR America/Paramaribo | SS Africa/Juba
        ST Africa/Sao_Tome | SV America/El_Salvador | SY Asia/Damascus | TC America/Grand_Turk
        TD Africa/Ndjamena | TF Asia/Dubai Indian/Maldives | TJ Asia/Dushanbe | TK Pacific/Fakaofo | TL Asia/Dili
        TM Asia/Ashgabat | TN Africa/Tunis | TO Pacific/Tongatapu | TR Europe/Istanbul | TW Asia/Taipei
        UA Europe/Simferopol Europe/Kyiv | UM Pacific/Pago_Pago Pacific/Tarawa
        US America/New_York America/Chicago America/Denver America/Phoenix America/Los_Angeles America/Anchorage America/Adak Pacific/Honolulu
        UY America/Montevideo | UZ Asia/Samarkand | VE America/Caracas | VU Pacific/Efate | WS Pacific/Apia
        """

    private static let byCountry: [RegionCode: [String]] = {
        var zones: [RegionCode: [String]] = [:]
        for line in table.split(separator: "\n") {
            for group in line.split(separator: "|") {
                let words = group.split(separator: " ").map(String.init)
                let codes = words.compactMap { RegionCode($0) }
                for code in codes { zones[code] = Array(words.dropFirst(codes.count)) }
            }
        }
        return zones
    }()
}
