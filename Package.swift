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

func room(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tests(
    _ name: String, _ dependencies: [Target.Dependency], fixtures: [String] = []
) -> Target {
    .testTarget(
        name: name, dependencies: dependencies, exclude: fixtures, swiftSettings: strict)
}

let nio: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioHTTP1: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let lifecycle: Target.Dependency = .product(
    name: "ServiceLifecycle", package: "swift-service-lifecycle")

let package = Package(
    name: "sendgate",
    products: [
        .executable(name: "sendgate", targets: ["sendgate"]),
        .library(name: "SendgateClient", targets: ["SendgateClient"]),
        .library(name: "SealedPush", targets: ["SealedPush"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // The stone under the ground floor: OpenSSL's headers, and the one spelling of everything we write.
        .systemLibrary(
            name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        room("CanonicalJSON"),

        // Layer 0: values and primitives. No I/O, no clock, no randomness but OpenSSL's own.
        room("GateVocabulary", ["CanonicalJSON"]),
        room("SealedFormat"),
        room("OpenSSLCrypto", ["COpenSSL"]),

        // Layer 1: one meaning each, pure, siblings that never import each other.
        room("WireProtocol", ["CanonicalJSON", "GateVocabulary"]),
        room("CompliancePolicy", ["CanonicalJSON", "GateVocabulary", "OpenSSLCrypto"]),
        room("PayloadComposition", ["CanonicalJSON", "GateVocabulary", "SealedFormat"]),
        room("PayloadSealing", ["GateVocabulary", "OpenSSLCrypto", "SealedFormat"]),
        room("AuditTrail", ["CanonicalJSON", "GateVocabulary", "OpenSSLCrypto"]),
        room("KeyLifecycle"),

        // Layer 2: everything known becomes everything to do.
        room(
            "SendPlanning",
            [
                "AuditTrail", "CanonicalJSON", "CompliancePolicy", "GateVocabulary", "PayloadComposition",
                "SealedFormat",
            ]),

        // Layer 3: the steps once, in order; the ports they need; one way to speak over a Unix socket.
        room(
            "GatewayPipeline",
            [
                "AuditTrail", "CanonicalJSON", "CompliancePolicy", "GateVocabulary", "KeyLifecycle",
                "OpenSSLCrypto", "PayloadSealing", "SealedFormat", "SendPlanning", "WireProtocol",
            ]),
        room("UnixHTTPClient", ["GateVocabulary", nio, nioPosix, nioHTTP1]),

        // Layer 4: the world, each room named for what it touches.
        room(
            "UnixSocketEndpoint",
            ["GatewayPipeline", "GateVocabulary", nio, nioPosix, nioHTTP1, logging, lifecycle]),
        room(
            "SQLiteStore",
            [
                "GatewayPipeline", "GateVocabulary", "OpenSSLCrypto",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ]),
        room("TrailDirectory", ["AuditTrail", "GateVocabulary", "OpenSSLCrypto"]),
        room(
            "PolicyFiles",
            [
                "AuditTrail", "CanonicalJSON", "CompliancePolicy", "GateVocabulary", "OpenSSLCrypto",
                .product(name: "Yams", package: "Yams"),
            ]),
        room("KeyFiles", ["CanonicalJSON", "GateVocabulary", "KeyLifecycle", "OpenSSLCrypto"]),
        room(
            "DeliveryRelay",
            ["CanonicalJSON", "GatewayPipeline", "GateVocabulary", "UnixHTTPClient", logging, lifecycle]),

        // Outside the house: what other teams link.
        room("SendgateClient", ["CanonicalJSON", "UnixHTTPClient"]),
        room("SealedPush", ["SealedFormat", .product(name: "Crypto", package: "swift-crypto")]),

        // Layer 5: the one binary.
        .executableTarget(
            name: "sendgate",
            dependencies: [
                "AuditTrail", "CanonicalJSON", "CompliancePolicy", "DeliveryRelay", "GatewayPipeline",
                "GateVocabulary", "KeyFiles", "KeyLifecycle", "OpenSSLCrypto", "PayloadSealing",
                "PolicyFiles",
                "SealedFormat", "SealedPush", "SendPlanning", "SQLiteStore", "TrailDirectory",
                "UnixHTTPClient", "UnixSocketEndpoint", "WireProtocol", logging, lifecycle,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Histogram", package: "hdrhistogram-swift"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ], swiftSettings: strict),

        // Tests, in the order of the rooms.
        .target(
            name: "GateTestKit", dependencies: ["CanonicalJSON", "CompliancePolicy", "GateVocabulary"],
            path: "Tests/GateTestKit", swiftSettings: strict),
        tests("ArchitectureTests", []),
        tests("CanonicalJSONTests", ["CanonicalJSON"]),
        tests("OpenSSLCryptoTests", ["OpenSSLCrypto"]),
        tests("SealedFormatTests", ["SealedFormat"]),
        tests("WireProtocolTests", ["CanonicalJSON", "GateVocabulary", "WireProtocol"]),
        tests(
            "CompliancePolicyTests",
            ["CanonicalJSON", "CompliancePolicy", "GateTestKit", "GateVocabulary", "PolicyFiles"]),
        tests(
            "PayloadCompositionTests",
            ["CanonicalJSON", "GateVocabulary", "PayloadComposition", "SealedFormat"], fixtures: ["Golden"]),
        tests(
            "PayloadSealingTests", ["GateVocabulary", "OpenSSLCrypto", "PayloadSealing", "SealedFormat"]),
        tests("AuditTrailTests", ["AuditTrail", "CanonicalJSON", "GateVocabulary", "OpenSSLCrypto"]),
        tests("KeyLifecycleTests", ["KeyLifecycle"]),
        tests(
            "SendPlanningTests",
            [
                "AuditTrail", "CanonicalJSON", "CompliancePolicy", "GateVocabulary", "PayloadComposition",
                "PolicyFiles", "SealedFormat", "SendPlanning",
            ]),
        tests(
            "GatewayPipelineTests",
            [
                "AuditTrail", "CanonicalJSON", "CompliancePolicy", "GateTestKit", "GateVocabulary",
                "GatewayPipeline", "OpenSSLCrypto", "PayloadSealing", "PolicyFiles", "SealedPush",
                "SendPlanning", "SQLiteStore", "WireProtocol",
                .product(name: "Crypto", package: "swift-crypto"),
            ]),
        tests(
            "UnixSocketEndpointTests",
            [
                "GatewayPipeline", "GateVocabulary", "UnixSocketEndpoint", nio, nioHTTP1, logging, lifecycle,
            ]),
        tests(
            "SQLiteStoreTests",
            [
                "GatewayPipeline", "GateVocabulary", "OpenSSLCrypto", "SQLiteStore",
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ]),
        tests(
            "StoreConformanceTests",
            ["GatewayPipeline", "GateVocabulary", "OpenSSLCrypto", "SQLiteStore"]),
        tests(
            "TrailDirectoryTests",
            ["AuditTrail", "CanonicalJSON", "GateVocabulary", "OpenSSLCrypto", "TrailDirectory"]),
        tests(
            "PolicyFilesTests", ["CanonicalJSON", "CompliancePolicy", "GateVocabulary", "PolicyFiles"]),
        tests("UnixHTTPClientTests", ["UnixHTTPClient"]),
        tests(
            "SendgateClientTests",
            ["CanonicalJSON", "GatewayPipeline", "SendgateClient", "UnixSocketEndpoint", logging]),
        tests(
            "SendgateCommandTests",
            [
                "AuditTrail", "CanonicalJSON", "CompliancePolicy", "DeliveryRelay", "GatewayPipeline",
                "GateVocabulary", "OpenSSLCrypto", "PolicyFiles", "sendgate", "TrailDirectory",
                "WireProtocol",
                "UnixSocketEndpoint", logging,
            ]),
        tests("SendgateEndToEndTests", ["sendgate"], fixtures: ["peers"]),
        tests("KeyFilesTests", ["GateVocabulary", "KeyFiles", "KeyLifecycle", "OpenSSLCrypto"]),
        tests(
            "SealedPushTests",
            [
                "GateVocabulary", "OpenSSLCrypto", "PayloadSealing", "SealedFormat", "SealedPush",
                .product(name: "Crypto", package: "swift-crypto"),
            ]),
    ]
)
