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
        var providers: [DeliveryLane: any DeliveryProvider] = [:]
        for (name, app) in configuration.apps {
            if let apns = app.apns {
                providers[DeliveryLane(.apns, app: name)] = try APNsProvider(apns, clock: clock)
            }
            if let fcm = app.fcm {
                providers[DeliveryLane(.fcm, app: name)] = try FCMProvider(fcm, clock: clock)
            }
            if let expo = app.expo, let journal, let reports {
                providers[DeliveryLane(.expo, app: name)] = try ExpoProvider(
                    expo, name: name, journal: journal, clock: clock, logger: logger, pass: reports.pass)
            }
        }
        if let journal {
            let single = SingleCopy(journal)
            if let mail = configuration.mail {
                providers[DeliveryLane(.mail)] = try SMTPProvider(mail, clock: clock, single: single)
            }
            if let sms = configuration.sms {
                providers[DeliveryLane(.sms)] = try TextProvider(sms, clock: clock, single: single)
            }
        }
        self.init(providers, fallback: configuration.onwardFile.map(FileProvider.init(path:)))
    }
}
