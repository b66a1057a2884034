// swift-tools-version: 6.2
import PackageDescription

// The architecture, layer by layer. A module imports lower layers only, never a sibling;
// `ArchitectureTests` compares every import with `layers` below.

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

// With `SENDGATE_OPTIMIZED` set, as the Makefile sets it, debug builds of what computes are optimised too and keep their
// assertions: a proof of the bundle takes a hundred times longer without. The variable exists because SwiftPM refuses unsafe
// flags in a dependency; without it any package can link the products.
let optimized: [SwiftSetting] =
    Context.environment["SENDGATE_OPTIMIZED"] == nil
    ? [] : [.unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug))]

// The release build of the modules whose classes hold the state of a batch, each confined to one thread, leaves out the check
// that no two accesses of a property overlap. Debug builds, which the tests run, keep it.
let confined: [SwiftSetting] =
    Context.environment["SENDGATE_OPTIMIZED"] == nil
    ? [] : [.unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release))]

/// - Parameters:
///   - computes: Whether tests spend their time in it. What waits for files and sockets is compiled four times as fast
///     without being optimised.
///   - isConfined: Whether its release build leaves out the checks of exclusive access.
func module(
    _ name: String, _ dependencies: [Target.Dependency] = [], computes: Bool = true, isConfined: Bool = false
) -> Target {
    .target(
        name: name, dependencies: dependencies,
        swiftSettings: strict + (computes ? optimized : []) + (isConfined ? confined : []))
}

/// - Parameter computes: Whether the tests themselves decide or hash by the million.
func tests(
    _ name: String, _ dependencies: [Target.Dependency], fixtures: [String] = [], computes: Bool = false
) -> Target {
    .testTarget(
        name: name, dependencies: dependencies, exclude: fixtures,
        swiftSettings: strict + (computes ? optimized : []))
}

let nio: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioHTTP1: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")
let nioEmbedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let nioTLS: Target.Dependency = .product(name: "NIOTLS", package: "swift-nio")
let nioSSL: Target.Dependency = .product(name: "NIOSSL", package: "swift-nio-ssl")
let nioHTTP2: Target.Dependency = .product(name: "NIOHTTP2", package: "swift-nio-http2")
let nioHPACK: Target.Dependency = .product(name: "NIOHPACK", package: "swift-nio-http2")
/// Apple's platforms have CryptoKit, so an app there links none of swift-crypto.
let cryptoWithoutCryptoKit: Target.Dependency = .product(
    name: "Crypto", package: "swift-crypto", condition: .when(platforms: [.linux, .android]))
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let lifecycle: Target.Dependency = .product(
    name: "ServiceLifecycle", package: "swift-service-lifecycle")

let package = Package(
    name: "sendgate",
    products: [
        .executable(name: "sendgate", targets: ["sendgate"]),
        .executable(name: "sendgate-courier", targets: ["sendgate-courier"]),
        .library(name: "SendgateClient", targets: ["SendgateClient"]),
        .library(name: "SealedPush", targets: ["SealedPush"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // Below the lowest layer: headers of C libraries, and the one spelling of all JSON that is written.
        .systemLibrary(
            name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(
            name: "CIDN2", pkgConfig: "libidn2", providers: [.apt(["libidn2-dev"])]),
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(
            name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
        module("CanonicalJSON"),

        // Layer 0: values and primitives. No I/O, no clock, no randomness but OpenSSL's own.
        module("GateVocabulary", ["CanonicalJSON", "CIDN2"]),
        module("SealedFormat"),

        // Layer 1: what OpenSSL does, up to the sealed envelope; one meaning each, pure, siblings that never import each other.
        module("OpenSSLCrypto", ["COpenSSL", "CSodium", "GateVocabulary", "SealedFormat"]),
        module("PayloadComposition", ["CanonicalJSON", "GateVocabulary", "SealedFormat"], computes: false),
        module("KeyLifecycle", ["CanonicalJSON", "GateVocabulary", "SealedFormat"], computes: false),
        module(
            "CourierModel",
            [
                "CanonicalJSON", "GateVocabulary", "SealedFormat",
                .product(name: "Crypto", package: "swift-crypto"),
            ], computes: false),

        // Layer 2: what a bundle says; what is stored, recorded and shown, each field declared once.
        module("BundleModel", ["CanonicalJSON", "GateVocabulary", "OpenSSLCrypto"]),
        module("GateRecords", ["CanonicalJSON", "GateVocabulary", "OpenSSLCrypto"]),

        // Layer 3: the trail that records lie in, and the socket that they are asked and answered at; a bundle made ready to
        // decide, and the law that it is held against, which cannot ask it; the YAML that bundles and configurations are
        // written in.
        module(
            "AuditTrail",
            ["CanonicalJSON", "GateRecords", "GateVocabulary", "OpenSSLCrypto", "SealedFormat"],
            computes: false),
        module(
            "WireProtocol", ["CanonicalJSON", "GateRecords", "GateVocabulary", "SealedFormat"],
            computes: false),
        module("CompliancePolicy", ["BundleModel", "CanonicalJSON", "GateVocabulary"]),
        module("PolicyStatutes", ["BundleModel", "CanonicalJSON", "GateVocabulary"]),
        module(
            "PolicyPages", ["BundleModel", "CanonicalJSON", .product(name: "Yams", package: "Yams")]),

        // Layer 4: everything known becomes everything to do; every decision a bundle can make, held against the law.
        module(
            "PolicyProof",
            ["BundleModel", "CanonicalJSON", "CompliancePolicy", "GateVocabulary", "PolicyStatutes"]),
        module(
            "SendPlanning",
            [
                "AuditTrail", "GateRecords", "BundleModel", "CanonicalJSON", "CompliancePolicy",
                "GateVocabulary",
                "PayloadComposition",
                "SealedFormat",
            ], computes: false),

        // Layer 5: every command as a pure step; replay from genesis.
        module(
            "GateSteps",
            [
                "AuditTrail", "BundleModel", "CanonicalJSON", "CompliancePolicy", "GateVocabulary",
                "KeyLifecycle",
                "OpenSSLCrypto", "GateRecords", "SealedFormat", "SendPlanning",
                "WireProtocol",
            ], isConfined: true),

        // Layer 6: the engine, the ports it needs, a route's way to its step; one way to speak over a Unix socket.
        module(
            "GatewayPipeline",
            [
                "AuditTrail", "BundleModel", "CanonicalJSON", "CompliancePolicy", "GateSteps",
                "GateVocabulary",
                "KeyLifecycle", "OpenSSLCrypto", "GateRecords", "SealedFormat",
                "SendPlanning", "WireProtocol",
            ], computes: false, isConfined: true),
        module("UnixHTTPClient", [nio, nioPosix, nioHTTP1], computes: false),
        module("UnixSockets", computes: false),

        // Layer 7: the world, each module named for what it touches.
        module(
            "CommandTerminal",
            ["CanonicalJSON", logging, .product(name: "ArgumentParser", package: "swift-argument-parser")],
            computes: false),
        module(
            "UnixSocketEndpoint",
            [
                "GatewayPipeline", "GateVocabulary", "UnixSockets", "WireProtocol", nio, nioPosix, nioHTTP1,
                logging, lifecycle,
            ], computes: false),
        module(
            "SQLiteStore",
            [
                "CSQLite", "GateSteps", "GateVocabulary", "GatewayPipeline", "OpenSSLCrypto",
                "GateRecords",
            ], computes: false, isConfined: true),
        module(
            "TrailDirectory",
            ["AuditTrail", "GateVocabulary", "OpenSSLCrypto", "SealedFormat"], computes: false),
        module(
            "PolicyFiles",
            [
                "AuditTrail", "BundleModel", "CanonicalJSON", "CompliancePolicy",
                "GateVocabulary",
                "OpenSSLCrypto", "PolicyPages", "SealedFormat",
            ], computes: false),
        module("ConfigurationPages", ["BundleModel", "CanonicalJSON", "PolicyPages"], computes: false),
        module(
            "KeyFiles",
            ["CanonicalJSON", "GateVocabulary", "KeyLifecycle", "OpenSSLCrypto", "SealedFormat"],
            computes: false),
        module(
            "DeliveryRelay",
            [
                "CanonicalJSON", "CourierModel", "GatewayPipeline", "GateSteps", "GateVocabulary",
                "UnixHTTPClient", "UnixSockets", logging, lifecycle,
            ], computes: false),

        module(
            "CourierProviders",
            [
                "CanonicalJSON", "CourierModel", "GateVocabulary", "SealedFormat", nio, nioPosix, nioHTTP1,
                nioTLS,
                nioSSL,
                nioHTTP2, nioHPACK, logging,
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
            ], computes: false),

        // What other teams link.
        module("SendgateClient", ["CanonicalJSON", "UnixHTTPClient"], computes: false),
        module("SealedPush", ["SealedFormat", cryptoWithoutCryptoKit], computes: false),

        // Layer 8: pages, which listen as the endpoint does; files of other systems, and the maps that read them; what
        // `sendgate bench` and `sendgate demo` do with processes of their own.
        module(
            "PublicPages",
            [
                "GatewayPipeline", "GateSteps", "GateVocabulary", "PayloadComposition", "UnixSocketEndpoint",
                "UnixSockets", "WireProtocol", nio, nioPosix, nioHTTP1, logging, lifecycle,
            ], computes: false),
        module(
            "ImportFiles",
            ["BundleModel", "CanonicalJSON", "ConfigurationPages", "GateVocabulary", "WireProtocol"],
            computes: false),
        module(
            "GateBench",
            [
                "CanonicalJSON", "CommandTerminal", "GateVocabulary", "SealedFormat", "SealedPush",
                "UnixHTTPClient", "WireProtocol",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Histogram", package: "hdrhistogram-swift"),
            ], computes: false),
        module(
            "GateDemo",
            [
                "CanonicalJSON", "CommandTerminal", "GateVocabulary", "GatewayPipeline", "OpenSSLCrypto",
                "SealedFormat", "SealedPush", "UnixHTTPClient", "UnixSocketEndpoint", "UnixSockets",
                "WireProtocol",
                logging, lifecycle,
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ], computes: false),

        module(
            "Courier",
            [
                "BundleModel", "CanonicalJSON", "CommandTerminal", "ConfigurationPages", "CourierModel",
                "CourierProviders", "GateVocabulary", "UnixHTTPClient", "UnixSockets",
                nio, nioPosix, nioHTTP1, logging, lifecycle,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ], computes: false),

        // Layer 9: the two binaries, one on each side of the hop's socket.
        .executableTarget(
            name: "sendgate-courier", dependencies: ["Courier"], swiftSettings: strict),
        .executableTarget(
            name: "sendgate",
            dependencies: [
                "AuditTrail", "GateRecords", "BundleModel", "CanonicalJSON", "CommandTerminal",
                "CompliancePolicy",
                "ConfigurationPages",
                "DeliveryRelay", "GateBench", "GateDemo", "GateSteps", "GateVocabulary", "GatewayPipeline",
                "ImportFiles", "KeyFiles", "KeyLifecycle", "OpenSSLCrypto", "PolicyFiles", "PolicyPages",
                "PolicyProof",
                "PolicyStatutes", "PublicPages", "SealedFormat", "SendPlanning", "SQLiteStore",
                "TrailDirectory", "UnixHTTPClient", "UnixSocketEndpoint", "UnixSockets", "WireProtocol",
                logging,
                lifecycle,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Histogram", package: "hdrhistogram-swift"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ], swiftSettings: strict),

        // Tests, in the order of the modules they test.
        .target(
            name: "GateTestKit",
            dependencies: [
                "AuditTrail", "GateRecords", "BundleModel", "CanonicalJSON", "CompliancePolicy",
                "GateVocabulary",
                "PayloadComposition",
                "OpenSSLCrypto", "PolicyFiles",
            ],
            path: "Tests/GateTestKit", swiftSettings: strict + optimized),
        // A decision read off the pages, and a million sends to decide.
        .target(
            name: "PlainPolicy",
            dependencies: [
                "BundleModel", "CompliancePolicy", "GateTestKit", "GateVocabulary", "PolicyProof",
                "PolicyStatutes",
            ],
            path: "Tests/PlainPolicy", swiftSettings: strict + optimized),
        // Also a part of the package `Tests/Benchmarks`, whose `floor` holds the gateway against it.
        .target(
            name: "GateFloor",
            dependencies: [
                "CanonicalJSON", "CSQLite", "GateSteps", "GateTestKit", "GateVocabulary", "OpenSSLCrypto",
                "GateRecords", "SQLiteStore",
            ], path: "Tests/Benchmarks/Sources/GateFloor", swiftSettings: strict),
        tests("ArchitectureTests", []),
        tests("CanonicalJSONTests", ["CanonicalJSON"]),
        tests("OpenSSLCryptoTests", ["GateVocabulary", "OpenSSLCrypto", "SealedFormat"]),
        tests("SealedFormatTests", ["SealedFormat"]),
        tests(
            "WireProtocolTests",
            [
                "CanonicalJSON", "GateRecords", "GateVocabulary", "GatewayPipeline", "SealedFormat",
                "WireProtocol",
            ]),
        tests(
            "CompliancePolicyTests",
            [
                "BundleModel", "CanonicalJSON", "CompliancePolicy", "PolicyProof", "PolicyStatutes",
                "GateTestKit", "GateVocabulary", "PlainPolicy", "PolicyFiles", "PolicyPages",
            ]),
        tests(
            "PayloadCompositionTests",
            ["CanonicalJSON", "GateTestKit", "GateVocabulary", "PayloadComposition", "SealedFormat"],
            fixtures: ["Golden"]),
        tests(
            "AuditTrailTests",
            [
                "AuditTrail", "GateRecords", "CanonicalJSON", "GateTestKit", "GateVocabulary",
                "OpenSSLCrypto", "SealedFormat",
            ]),
        tests(
            "GateRecordsTests",
            ["CanonicalJSON", "GateRecords", "GateTestKit", "GateVocabulary"]),
        tests("KeyLifecycleTests", ["GateVocabulary", "KeyLifecycle", "SealedFormat"]),
        tests(
            "CourierModelTests",
            [
                "CanonicalJSON", "CourierModel", "GateVocabulary", "SealedFormat",
                .product(name: "Crypto", package: "swift-crypto"),
            ]),
        tests(
            "SendPlanningTests",
            [
                "AuditTrail", "GateRecords", "BundleModel", "CanonicalJSON", "CompliancePolicy",
                "GateTestKit",
                "GateVocabulary",
                "PayloadComposition", "PolicyFiles", "SealedFormat", "SendPlanning",
            ]),
        tests(
            "GateStepsTests",
            ["GateRecords", "GateSteps", "GateTestKit", "GateVocabulary", "OpenSSLCrypto", "WireProtocol"]),
        tests(
            "GatewayPipelineTests",
            [
                "AuditTrail", "BundleModel", "CanonicalJSON", "CompliancePolicy", "CourierModel",
                "DeliveryRelay",
                "GateSteps", "GateTestKit", "GateVocabulary", "GatewayPipeline", "InMemoryStore",
                "KeyLifecycle",
                "OpenSSLCrypto", "PolicyFiles", "PolicyPages", "GateRecords", "SealedFormat", "SealedPush",
                "SendPlanning",
                "SQLiteStore",
                "WireProtocol", .product(name: "Crypto", package: "swift-crypto"),
            ]),
        tests(
            "UnixSocketEndpointTests",
            [
                "GateVocabulary", "GatewayPipeline", "UnixSocketEndpoint", "UnixSockets", "WireProtocol",
                nio, nioHTTP1, nioEmbedded, logging, lifecycle,
            ]),
        tests(
            "PublicPagesTests",
            [
                "BundleModel", "CompliancePolicy", "GateSteps", "GateTestKit", "GateVocabulary",
                "GatewayPipeline", "PublicPages", "UnixSocketEndpoint", "UnixSockets", nio, nioHTTP1,
                nioEmbedded, logging,
            ]),
        tests(
            "SQLiteStoreTests",
            [
                "BundleModel", "CompliancePolicy", "CSQLite", "GateSteps", "GateTestKit", "GateVocabulary",
                "GatewayPipeline", "InMemoryStore", "OpenSSLCrypto", "GateRecords", "SQLiteStore",
            ]),
        .target(
            name: "InMemoryStore",
            dependencies: [
                "GateSteps", "GateVocabulary", "GatewayPipeline", "OpenSSLCrypto", "GateRecords",
            ],
            path: "Tests/InMemoryStore", swiftSettings: strict + optimized),
        .testTarget(
            name: "SimulationTests",
            dependencies: [
                "AuditTrail", "BundleModel", "CanonicalJSON", "CompliancePolicy", "GateSteps", "GateTestKit",
                "GateVocabulary", "GatewayPipeline", "InMemoryStore", "KeyLifecycle", "OpenSSLCrypto",
                "PolicyFiles", "PolicyPages", "GateRecords", "SealedFormat", "SealedPush", "SendPlanning",
                "WireProtocol",
                .product(name: "Crypto", package: "swift-crypto"),
            ], path: "Tests/Simulation", swiftSettings: strict + optimized),
        tests(
            "StoreConformanceTests",
            [
                "GateSteps", "GateTestKit", "GateVocabulary", "GatewayPipeline", "InMemoryStore",
                "OpenSSLCrypto", "GateRecords", "SQLiteStore",
            ]),
        tests(
            "TrailDirectoryTests",
            [
                "AuditTrail", "GateRecords", "CanonicalJSON", "GateTestKit", "GateVocabulary",
                "OpenSSLCrypto",
                "SealedFormat", "TrailDirectory",
            ]),
        tests(
            "PolicyFilesTests",
            [
                "BundleModel", "CanonicalJSON", "CompliancePolicy", "GateTestKit", "GateVocabulary",
                "PolicyFiles", "PolicyPages", "PolicyProof",
            ]),
        tests("UnixHTTPClientTests", ["UnixHTTPClient"]),
        tests(
            "DeliveryRelayTests",
            [
                "CanonicalJSON", "DeliveryRelay", "GateSteps", "GateVocabulary", "GatewayPipeline", logging,
            ]),
        tests(
            "CourierTests",
            [
                "BundleModel", "CanonicalJSON", "CommandTerminal", "ConfigurationPages", "Courier",
                "CourierModel",
                "CourierProviders", "GateVocabulary", "UnixHTTPClient", "UnixSockets", logging, lifecycle,
            ]),
        tests(
            "CourierProvidersTests",
            [
                "CanonicalJSON", "CourierModel", "CourierProviders", "GateVocabulary", nio, nioEmbedded,
                nioSSL,
                logging,
                .product(name: "Crypto", package: "swift-crypto"),
            ], fixtures: ["peers"]),
        tests(
            "SendgateClientTests",
            [
                "CanonicalJSON", "GatewayPipeline", "GateVocabulary", "SendgateClient",
                "UnixSocketEndpoint", "UnixSockets", logging,
            ]),
        tests(
            "SendgateCommandTests",
            [
                "AuditTrail", "BundleModel", "CanonicalJSON", "CommandTerminal", "CompliancePolicy",
                "DeliveryRelay", "GateBench", "GateFloor", "GateSteps", "GateTestKit", "GateVocabulary",
                "GatewayPipeline", "ImportFiles", "KeyFiles", "KeyLifecycle", "OpenSSLCrypto",
                "ConfigurationPages", "PolicyFiles", "PolicyProof",
                "PublicPages", "GateRecords", "SQLiteStore", "SealedFormat", "sendgate", "SendPlanning",
                "TrailDirectory", "UnixSocketEndpoint", "UnixSockets", "WireProtocol", logging,
            ]),
        // The handbook's Swift program, which the tests compare with the page and run.
        .executableTarget(
            name: "FirstSend", dependencies: ["SendgateClient"], path: "Tests/FirstSend",
            swiftSettings: strict),
        tests(
            "SendgateEndToEndTests",
            ["FirstSend", "GateTestKit", "GateVocabulary", "sendgate", "sendgate-courier"],
            fixtures: ["peers"]),
        tests(
            "ImportFilesTests", ["CanonicalJSON", "ConfigurationPages", "ImportFiles"], computes: true),
        tests(
            "KeyFilesTests", ["GateTestKit", "GateVocabulary", "KeyFiles", "KeyLifecycle", "OpenSSLCrypto"]),
        tests(
            "SealedPushTests",
            [
                "GateVocabulary", "OpenSSLCrypto", "SealedFormat", "SealedPush",
                .product(name: "Crypto", package: "swift-crypto"),
            ]),
    ]
)

// For `make test-module`: the other test targets, and what only they need, are left out of the build.
if let module = Context.environment["SENDGATE_TEST_MODULE"] {
    package.targets.removeAll { $0.type == .test && $0.name != module }
}
