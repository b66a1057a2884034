import CourierModel
package import CourierProviders
package import Logging

extension ProviderRegistry {
    /// The providers of a configuration.
    ///
    /// - Parameters:
    ///   - journal: What must outlive the process; the configuration has demanded it where a provider needs it.
    ///   - reports: Where Expo's receipts go; demanded in the same way.
    /// - Throws: When a credential, a trust file or an endpoint cannot be used.
    package init(
        _ configuration: CourierConfiguration, journal: CourierJournal?, reports: GatewayReports?,
        clock: ProviderClock, logger: Logger
    ) throws {
        let makers = Self.makers(
            configuration, journal: journal, reports: reports, clock: clock, logger: logger)
        self.init(
            try makers.mapValues { try $0() },
            fallback: configuration.onwardFile.map(FileProvider.init(path:)))
    }

    /// A function for each provider that makes it, so that `check` looks at the others when one cannot be made.
    static func makers(
        _ configuration: CourierConfiguration, journal: CourierJournal?, reports: GatewayReports?,
        clock: ProviderClock, logger: Logger
    ) -> [ProviderLane: () throws -> any DeliveryProvider] {
        var makers: [ProviderLane: () throws -> any DeliveryProvider] = [:]
        for (name, app) in configuration.apps {
            if let apns = app.apns {
                makers[ProviderLane(.apns, app: name)] = { try APNsProvider(apns, clock: clock) }
            }
            if let fcm = app.fcm {
                makers[ProviderLane(.fcm, app: name)] = { try FCMProvider(fcm, clock: clock) }
            }
            if let expo = app.expo, let journal, let reports {
                makers[ProviderLane(.expo, app: name)] = {
                    try ExpoProvider(
                        expo, name: name, journal: journal, clock: clock, logger: logger, pass: reports.pass)
                }
            }
        }
        guard let journal else { return makers }
        let single = SingleCopy(journal)
        if let mail = configuration.mail {
            makers[ProviderLane(.mail)] = { try SMTPProvider(mail, clock: clock, single: single) }
        }
        if let sms = configuration.sms {
            makers[ProviderLane(.sms)] = { try TextProvider(sms, clock: clock, single: single) }
        }
        return makers
    }
}
