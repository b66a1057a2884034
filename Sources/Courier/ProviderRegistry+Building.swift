package import CourierModel
package import CourierProviders

extension ProviderRegistry {
    /// The providers of a configuration.
    ///
    /// - Parameter journal: What must outlive the process; the configuration has demanded it where a provider needs it.
    /// - Throws: When a credential, a trust file or an endpoint cannot be used.
    package init(
        _ configuration: CourierConfiguration, journal: CourierJournal?, clock: ProviderClock
    ) throws {
        var providers: [DeliveryLane: any DeliveryProvider] = [:]
        for (name, app) in configuration.apps {
            if let apns = app.apns {
                providers[DeliveryLane(.apns, app: name)] = try APNsProvider(apns, clock: clock)
            }
            if let fcm = app.fcm {
                providers[DeliveryLane(.fcm, app: name)] = try FCMProvider(fcm, clock: clock)
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
