package import CourierModel
import GateVocabulary

/// One way out, with a provider and a circuit of its own: a service of one app, or a channel without apps.
package struct ProviderLane: Sendable, Hashable, CustomStringConvertible {
    package enum Service: String, CaseIterable, Sendable {
        case apns, fcm, expo, sms, mail
    }

    package var service: Service
    /// The app of a push; `nil` for mail and texts.
    package var app: String?

    package init(_ service: Service, app: String? = nil) {
        self.service = service
        self.app = app
    }

    package init(_ order: DeliveryOrder) {
        switch order.channel {
        case .sms: self.init(.sms)
        case .email: self.init(.mail)
        case .push:
            let service: Service =
                switch (order.provider, order.platform) {
                case (.expo, _): .expo
                case (nil, .ios), (nil, nil): .apns
                case (nil, .android): .fcm
                }
            self.init(service, app: order.app)
        }
    }

    package var description: String { app.map { "\(service.rawValue) \($0)" } ?? service.rawValue }
}

/// The providers of a configuration, by lane.
package struct ProviderRegistry: Sendable {
    /// Apps times services, with room.
    package static let laneCountMax = 1_000

    package private(set) var providers: [ProviderLane: any DeliveryProvider]
    /// Takes every order that has no provider of its own; for `--dev`.
    package var fallback: (any DeliveryProvider)?

    package init(_ providers: [ProviderLane: any DeliveryProvider], fallback: (any DeliveryProvider)? = nil) {
        self.providers = providers
        self.fallback = fallback
    }

    package subscript(_ lane: ProviderLane) -> (any DeliveryProvider)? { providers[lane] ?? fallback }

    /// In the order in which they are shown.
    package var sorted: [(lane: ProviderLane, provider: any DeliveryProvider)] {
        providers.map { ($0.key, $0.value) }.sorted { $0.lane.description < $1.lane.description }
    }
}
