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
    _ name: String, _ dependencies: [Target.Dependency], resources: [Resource] = []
) -> Target {
    .testTarget(
        name: name, dependencies: dependencies, resources: resources, swiftSettings: strict)
}

let nio: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioHTTP1: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let lifecycle: Target.Dependency = .product(
    name: "ServiceLifecycle", package: "swift-service-lifecycle")

let package = Package(
    name: "sendgate",
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
                "CanonicalJSON", "GatewayPipeline", "GateVocabulary", "OpenSSLCrypto",
                .product(name: "GRDB", package: "GRDB.swift"),
            ]),
        room(
            "TrailDirectory",
            ["AuditTrail", "CanonicalJSON", "GatewayPipeline", "GateVocabulary", "OpenSSLCrypto"]),
        room(
            "PolicyFiles",
            [
                "CanonicalJSON", "CompliancePolicy", "GateVocabulary", "OpenSSLCrypto",
                .product(name: "Yams", package: "Yams"),
            ]),
        room("KeyFiles", ["CanonicalJSON", "GateVocabulary", "KeyLifecycle", "OpenSSLCrypto"]),
        room(
            "DeliveryRelay",
            ["CanonicalJSON", "GatewayPipeline", "GateVocabulary", "UnixHTTPClient", logging, lifecycle]),

        // Layer 5: the one binary.
    ]
)
